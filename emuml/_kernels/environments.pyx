"""The environment in C: SimPy's ways to make events, and its loop."""

from cpython.exc cimport PyErr_CheckSignals

from emuml._kernels.events cimport Core
from emuml._kernels.occurrences cimport OK, Event, Timeout, begin
from emuml._kernels.pools cimport emuml_make, pool
from emuml._kernels.processes cimport new_process
from emuml._kernels.queue cimport Place

cdef enum:
    PLAIN = 0  # numbers of pools
    TIMEOUT = 1
    URGENT = 0

cdef object StopSimulation, EmptySchedule, AnyEvent, AllOf, AnyOf


def bind(simpy_core, event, timeout, all_of, any_of):
    """Hand in SimPy's module of environments, and the classes to make."""
    global StopSimulation, EmptySchedule, AnyEvent, AllOf, AnyOf
    StopSimulation, EmptySchedule, AnyEvent = simpy_core.StopSimulation, simpy_core.EmptySchedule, simpy_core.Event
    AllOf, AnyOf = all_of, any_of
    pool(PLAIN, event)
    pool(TIMEOUT, timeout)


cdef class Environment(Core):
    """The queue with SimPy's ways to make events, and its loop."""

    def event(self):
        """Return a new event."""
        cdef Event event = emuml_make(PLAIN)
        event.env = self
        return event

    def timeout(self, delay=0, value=None):
        """Return an event that happens after ``delay``."""
        cdef Timeout event = emuml_make(TIMEOUT)
        event.env = self
        begin(event, delay, value)
        return event

    def process(self, generator):
        """Run a generator as a process."""
        return new_process(self, generator)

    def all_of(self, events):
        """Return an event that happens when all ``events`` have happened."""
        return AllOf(self, events)

    def any_of(self, events):
        """Return an event that happens when one of ``events`` has happened."""
        return AnyOf(self, events)

    def run(self, until=None):
        """Process events until a time, an event, or the end of the schedule; return the event's value."""
        cdef Event stop
        self.watched = type(self).schedule is not Core.schedule or "schedule" in self.__dict__
        if until is not None:
            if not isinstance(until, AnyEvent):
                at = until if isinstance(until, int) else float(until)
                if at <= self.now:
                    raise ValueError(f"until ({at}) must be greater than the current simulation time")
                until = stop = emuml_make(PLAIN)
                stop.env, stop.value = self, None
                stop.bits |= OK
                self.schedule(stop, URGENT, at - self.now)
            elif until.callbacks is None:
                return until.value
            until.callbacks.append(StopSimulation.callback)
        try:
            if type(self).step is Core.step and "step" not in self.__dict__:
                self.run_all()
            else:
                while True:
                    self.step()
        except StopSimulation as stopped:
            return stopped.args[0]
        except EmptySchedule:
            if until is not None:
                assert not until.triggered
                raise RuntimeError(f'No scheduled events left but "until" event was not triggered: {until}') from None
        return None

    cdef int run_all(self) except -1:
        cdef Place place
        cdef unsigned int turn = 0
        while self.take(&place):
            self.happen(place)
            turn += 1
            if turn & 4095 == 0:
                PyErr_CheckSignals()
        raise EmptySchedule
