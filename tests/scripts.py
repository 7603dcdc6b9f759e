"""One life of a script, driven by hand: an event in, the effects out."""

from pathlib import Path

from emuml import effects as fx
from emuml.blocks import Saved
from emuml.directory import Directory
from emuml.life import Life
from emuml.script import Script
from tests.lives import LINKS, ME, ROSTER


class Scripted(Script):
    """Plays a coroutine function ``play(node, told)``, whose ``told`` the test reads."""

    def __init__(self, play):
        self.play, self.told = play, []

    async def main(self, node):
        await self.play(node, self.told.append)


class Played:
    """A script with its life; each method hands over one event and returns the effects."""

    def __init__(self, play, saved=None, checker=None, incarnation=1, directory=None):
        self.directory = Directory(ROSTER, LINKS) if directory is None else directory
        self.script = Scripted(play)
        self.life = Life(self.script, ME, incarnation, self.directory, checker)
        self.told = self.script.told
        self.first = self.life.handle(fx.Started(Saved(saved)), 0.0)

    def message(self, sender, message, now=1.0):
        return self.life.handle(fx.Received(sender, message), now)

    def peer(self, peer, state, now=1.0):
        return self.life.handle(fx.PeerChanged(peer, state), now)

    def timer(self, name, now=1.0):
        event = fx.TimerFired(name, self.life.timers[name])
        assert self.life.is_current(event)
        return self.life.handle(event, now)

    def computed(self, tag, result, now=1.0):
        event = fx.Computed(tag, result, self.life.tasks[tag])
        assert self.life.is_current(event)
        return self.life.handle(event, now)

    def saved(self, tag, now=1.0):
        return self.life.handle(fx.SaveDone(tag), now)

    def loaded(self, tag, blocks, now=1.0):
        return self.life.handle(fx.LoadDone(tag, blocks), now)


def kinds(effects):
    """Return effects in short: kind, and name or tag where there is one."""
    return [
        (type(effect).__name__, getattr(effect, "name", getattr(effect, "tag", None)))
        if hasattr(effect, "name") or hasattr(effect, "tag")
        else type(effect).__name__
        for effect in effects
    ]


def line_in(file, mark):
    """Return ``file:line`` of the line that ends with a comment."""
    lines = Path(file).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}")]
    return f"{file}:{number}"
