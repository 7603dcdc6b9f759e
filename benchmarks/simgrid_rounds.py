"""The rounds of ``node_messages`` for SimGrid's Python bindings, under any Python that has them.

Usage: ``python3 -I simgrid_rounds.py WORKERS ROUNDS [--cfg=...]``; prints the simulated and its own CPU seconds.
"""

import random
import sys
import time

from simgrid import Actor, Engine, Mailbox, NetZone, this_actor


def worker(index):
    """Compute and answer, for ever."""
    inbox, master = Mailbox.by_name(f"worker-{index}"), Mailbox.by_name("master")
    draw = random.Random(index).expovariate
    while True:
        number = inbox.get()
        this_actor.sleep_for(draw(1.0))
        master.put_init(number, 8).detach()


def master(workers, rounds):
    """Send work to all and wait for all answers, round by round."""
    inbox = Mailbox.by_name("master")
    boxes = [Mailbox.by_name(f"worker-{index}") for index in range(workers)]
    for number in range(rounds):
        for box in boxes:
            box.put_init(number, 8).detach()
        for _ in boxes:
            inbox.get()


def main():
    """Run the simulation."""
    engine = Engine(sys.argv)
    workers, rounds = int(sys.argv[1]), int(sys.argv[2])
    zone = NetZone.create_full_zone("zone")
    host = zone.create_host("host", 1e9)
    zone.seal()
    Actor.create("master", host, master, workers, rounds)
    for index in range(workers):
        Actor.create("worker", host, worker, index).daemonize()
    engine.run()
    print(f"{Engine.clock:.6f} {time.process_time():.6f}")


main()
