"""Random programs of scripts, in two forms: as a script, and as a plain state machine that is easy to see through.

A program is a list of operations. ``("start", what, argument)`` begins something that may be awaited later,
``("cancel", k)`` cancels the k-th started thing if that is a task, ``("send",)`` sends, and ``("await", wait)`` awaits
``("receive", types, sender, even, timeout_s)``, ``("started", k)``, ``("sleep", seconds)`` or ``("select", waits)``.
"""

from emuml import Node, PeerChange, Script
from emuml.errors import ContractError, JobCancelled
from tests.lives import SERVER, WORKERS, Note, Text, task

TYPES = {"text": Text, "note": Note, "peer": PeerChange}
SENDERS = (SERVER, *WORKERS)


def is_even(message):
    """Tell whether a message is one of those that a choosy receive takes."""
    return len(getattr(message, "text", "")) % 2 == 0


def told(outcome):
    """Return an outcome as text."""
    if isinstance(outcome, tuple) and hasattr(outcome[0], "role"):
        return f"{outcome[0]} {getattr(outcome[1], 'text', outcome[1])}"
    if isinstance(outcome, tuple):
        return f"{outcome[0]}: {told(outcome[1])}"
    return str(dict(outcome)) if hasattr(outcome, "version") else str(outcome)


class AsScript(Script):
    """Plays a program with awaits."""

    messages = (Text, Note)

    def __init__(self, program):
        self.program = program

    async def main(self, node):
        self.started = []
        for kind, *rest in self.program:
            if kind == "send":
                node.send(SERVER, Text("sent"))
            elif kind == "start":
                self.started.append(self.start(node, *rest))
            elif kind == "cancel" and self.started:
                if hasattr(job := self.started[rest[0] % len(self.started)], "cancel"):
                    job.cancel()
            elif kind == "await":
                await self.wait(node, rest[0])
        node.stop("end of the program")

    def start(self, node, what, argument):
        if what == "compute":
            return node.compute(task(1 + argument))
        if what == "save":
            return node.save({"block": argument})
        return node.load("block", argument) if what == "load" else node.sleep(argument)

    async def wait(self, node, wait):
        try:
            outcome = await self.made(node, wait)
        except JobCancelled:
            outcome = "cancelled"
        node.log(outcome=told(outcome))

    def made(self, node, wait):
        kind, *rest = wait
        if kind == "receive":
            types, sender, even, timeout_s = rest
            kinds = [TYPES[name] for name in types]
            return node.receive(*kinds, sender=sender, where=is_even if even else None, timeout_s=timeout_s)
        if kind == "started" and self.started:
            return self.started[rest[0] % len(self.started)]
        if kind == "select":
            parts = [self.made(node, part) for part in rest[0]]
            return node.select(**{f"part{i}": part for i, part in enumerate(parts) if part not in parts[:i]})
        return node.sleep(rest[0])


def leaves_of(wait):
    """Return the waits that one is made of."""
    return [leaf for part in wait["parts"].values() for leaf in leaves_of(part)] if "parts" in wait else [wait]


class AsHandlers(Node):
    """Plays a program as a state machine: after each event it looks at everything anew, from the beginning."""

    messages = (Text, Note)

    def __init__(self, program):
        self.program = program

    def on_start(self, ctx, saved):
        self.at, self.mailbox, self.started, self.timers, self.jobs = 0, [], [], {}, {}
        self.counts, self.current = {}, None
        self.go_on(ctx)

    def on_message(self, ctx, sender, message):
        self.mailbox.append((sender, message))
        self.go_on(ctx)

    def on_peer(self, ctx, peer, state):
        self.on_message(ctx, peer, PeerChange(state))

    def on_timer(self, ctx, name):
        self.timers.pop(name)["over"] = True
        self.go_on(ctx)

    def on_computed(self, ctx, tag, result):
        self.jobs[tag]["outcome"] = result
        self.go_on(ctx)

    def on_saved(self, ctx, tag):
        self.on_computed(ctx, tag, None)

    def on_loaded(self, ctx, tag, blocks):
        self.on_computed(ctx, tag, blocks)

    def name(self, kind):
        self.counts[kind] = self.counts.get(kind, -1) + 1
        return f"{kind}/{self.counts[kind]}"

    def set_timer(self, ctx, kind, after_s, owner):
        owner["timer"] = self.name(kind)
        self.timers[owner["timer"]] = owner
        ctx.set_timer(owner["timer"], after_s)

    def go_on(self, ctx):
        while self.at < len(self.program):
            kind, *rest = self.program[self.at]
            if kind == "await" and not self.awaited(ctx, rest[0]):
                return
            if kind == "send":
                ctx.send(SERVER, Text("sent"))
            elif kind == "start":
                self.started.append(self.start(ctx, *rest))
            elif kind == "cancel" and self.started:
                thing = self.started[rest[0] % len(self.started)]
                if thing["kind"] == "compute" and "outcome" not in thing:
                    thing["cancelled"] = True
                    ctx.cancel(thing["tag"])
            self.at += 1
        if self.at == len(self.program):
            self.at += 1
            ctx.stop("end of the program")

    def start(self, ctx, what, argument):
        if what == "sleep":
            return self.made(ctx, ("sleep", argument))
        thing = {"kind": what, "tag": self.name(what)}
        self.jobs[thing["tag"]] = thing
        if what == "compute":
            ctx.compute(thing["tag"], task(1 + argument))
        elif what == "save":
            ctx.save(thing["tag"], {"block": argument})
        else:
            ctx.load(thing["tag"], ("block", argument))
        return thing

    def made(self, ctx, wait):
        kind, *rest = wait
        if kind == "receive":
            types, sender, even, timeout_s = rest
            kinds = tuple(TYPES[name] for name in types) or (object,)
            return {"kind": kind, "types": kinds, "sender": sender, "even": even, "timeout_s": timeout_s}
        if kind == "started" and self.started:
            return self.started[rest[0] % len(self.started)]
        if kind == "select":
            parts = [self.made(ctx, part) for part in rest[0]]
            named = {f"part{i}": part for i, part in enumerate(parts) if not any(part is other for other in parts[:i])}
            leaves = [id(leaf) for part in named.values() for leaf in leaves_of(part)]
            if len(set(leaves)) < len(leaves):
                raise ContractError("listed twice")
            return {"kind": kind, "parts": named}
        thing = {"kind": "sleep"}
        self.set_timer(ctx, "sleep", rest[0], thing)
        return thing

    def awaited(self, ctx, wait):
        """Tell whether a wait is over; then its outcome is logged."""
        begins = self.current is None
        if begins:
            self.current = self.made(ctx, wait)
        if not self.is_ready(self.current):
            if begins:
                self.arm(ctx, self.current)
            return False
        ready, self.current = self.current, None
        ctx.log(outcome=told(self.taken(ctx, ready)))
        return True

    def letter(self, wait):
        """Return the first message that a receive wants, by its place."""
        for place, (sender, message) in enumerate(self.mailbox):
            wanted = isinstance(message, wait["types"]) and wait["sender"] in (None, sender)
            if wanted and (not wait["even"] or is_even(message)):
                return place
        return None

    def is_ready(self, wait):
        if wait["kind"] == "receive":
            return self.letter(wait) is not None or wait.get("over", False)
        if wait["kind"] == "select":
            return any(self.is_ready(part) for part in wait["parts"].values())
        if wait.get("withdrawn"):
            raise ContractError("withdrawn")
        return wait.get("over", False) or "outcome" in wait or wait.get("cancelled", False)

    def arm(self, ctx, wait):
        if wait["kind"] == "receive" and wait["timeout_s"] is not None:
            self.set_timer(ctx, "timeout", wait["timeout_s"], wait)
        for part in wait.get("parts", {}).values():
            self.arm(ctx, part)

    def taken(self, ctx, wait):
        if wait["kind"] == "select":
            name = next(name for name, part in wait["parts"].items() if self.is_ready(part))
            for other, part in wait["parts"].items():
                if other != name:
                    self.withdraw(ctx, part)
            outcome = self.taken(ctx, wait["parts"][name])
            return outcome if outcome == "cancelled" else (name, outcome)
        if wait["kind"] == "receive":
            place = self.letter(wait)
            self.disarm(ctx, wait)
            return None if place is None else self.mailbox.pop(place)
        return "cancelled" if wait.get("cancelled") else wait.get("outcome")

    def withdraw(self, ctx, wait):
        for part in wait.get("parts", {}).values():
            self.withdraw(ctx, part)
        if wait["kind"] == "sleep" and not wait.get("over"):
            wait["withdrawn"] = True
        if wait["kind"] in ("sleep", "receive"):
            self.disarm(ctx, wait)

    def disarm(self, ctx, wait):
        if self.timers.pop(wait.get("timer"), None) is not None:
            ctx.cancel_timer(wait["timer"])
