"""Node classes: ids, and which messages a class knows."""

import pytest

from emuml.errors import ContractError
from emuml.message import Message
from emuml.node import Node, NodeId, check_same_messages, message_types
from emuml.protocols.gradient_coding import messages, server, worker


class Note(Message):
    text: str


class Plain(Node):
    pass


class Declared(Node):
    messages = (Note,)


class Derived(server.Server):
    """Lives in a module with other messages, and speaks the language of gradient coding all the same."""


class Elsewhere(worker.Worker):
    messages = (*worker.Worker.messages, Note)


def test_ids_order_by_role_and_number():
    assert sorted([NodeId("worker", 10), NodeId("worker", 2), NodeId("server", 3)]) == [
        NodeId("server", 3),
        NodeId("worker", 2),
        NodeId("worker", 10),
    ]


@pytest.mark.parametrize("text", ["worker", "worker-", "-3", "worker-x", "worker-1.5", ""])
def test_text_that_is_no_id_is_refused(text):
    with pytest.raises(ValueError, match="no node id"):
        NodeId.parse(text)


def test_an_id_is_what_it_prints_as():
    assert NodeId.parse(str(NodeId("parameter-server", 12))) == NodeId("parameter-server", 12)


def test_a_class_knows_the_messages_of_its_module_or_those_it_declares():
    assert message_types(Plain) == (Note,)
    assert message_types(Declared) == (Note,)
    assert set(message_types(Derived)) == {messages.Gradient, messages.Parameters}


def test_nodes_that_know_different_messages_are_refused():
    check_same_messages([server.Server.__new__(server.Server), worker.Worker.__new__(worker.Worker)])
    with pytest.raises(ContractError, match="Elsewhere knows the message Note and Server does not"):
        check_same_messages([server.Server.__new__(server.Server), Elsewhere.__new__(Elsewhere)])
