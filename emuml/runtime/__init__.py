"""The real runtime: the same nodes as processes that talk over TCP.

It executes effects and decides nothing. What can be written without a socket (frames, handshake, sessions) is sans-IO:
bytes and times in, bytes and events out. It never imports the emulator.
"""
