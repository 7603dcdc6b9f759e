"""A toy of two nodes: a client has numbers kept, one after the other; a keeper saves each and then acknowledges it."""

from emuml.message import Message
from emuml.node import Node, NodeId, PeerState


class Keep(Message):
    number: int


class Kept(Message):
    number: int


KEEPER, CLIENT = NodeId("keeper", 0), NodeId("client", 0)


class Client(Node):
    messages = (Keep, Kept)

    def __init__(self, last=4):
        self.last = last

    def on_start(self, ctx, saved):
        self.kept = 0
        ctx.send(KEEPER, Keep(1))

    def on_message(self, ctx, sender, message):
        if message.number == self.kept + 1:
            self.kept += 1
            if self.kept == self.last:
                ctx.stop("done")
            else:
                ctx.send(KEEPER, Keep(self.kept + 1))

    def on_peer(self, ctx, peer, state):
        if state in (PeerState.UP, PeerState.RESTARTED):
            ctx.send(KEEPER, Keep(self.kept + 1))

    def waiting_for(self):
        return f"number {self.kept + 1}"


class Keeper(Node):
    messages = (Keep, Kept)

    def on_start(self, ctx, saved):
        self.number = self.durable = saved.get("number", 0)

    def on_message(self, ctx, sender, message):
        if message.number == self.number + 1:
            self.number += 1
            ctx.save(self.number, {"number": self.number})
        elif message.number <= self.durable:
            ctx.send(CLIENT, Kept(message.number))

    def on_saved(self, ctx, tag):
        self.durable = tag
        ctx.send(CLIENT, Kept(tag))


class Hasty(Keeper):
    """Acknowledges what is not durable."""

    def on_message(self, ctx, sender, message):
        super().on_message(ctx, sender, message)
        ctx.send(CLIENT, Kept(message.number))


class Torn(Keeper):
    """Number and proof of it in two saves."""

    def on_start(self, ctx, saved):
        super().on_start(ctx, saved)
        self.proof = saved.get("proof", 0)

    def on_message(self, ctx, sender, message):
        if message.number == self.number + 1:
            self.proof = message.number
            ctx.save("proof", {"proof": self.proof})
        super().on_message(ctx, sender, message)

    def on_saved(self, ctx, tag):
        if tag != "proof":
            super().on_saved(ctx, tag)


class Deaf(Client):
    """Never asks again."""

    def on_peer(self, ctx, peer, state):
        pass


def nodes(keeper=Keeper, client=Client):
    return lambda: {"client-0": ("client", client), "keeper-0": ("keeper", keeper)}


def durable(run):
    """Describe: what was acknowledged is there."""
    run.always(lambda nodes: nodes["keeper"].number >= nodes["client"].kept, "what was acknowledged is there")
    run.eventually("done")


def whole(run):
    """Describe: number and proof agree when a life begins."""
    run.always(lambda nodes: nodes["keeper"].number == nodes["keeper"].proof, "number and proof agree")
