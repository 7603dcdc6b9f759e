/* SimGrid as a peer of emuml's flows: all messages of a list at their starts, over a platform file.
 *
 * Usage: simgrid_flows PLATFORM.xml FLOWS.txt UNTIL_S [--cfg=...]
 * A line of FLOWS.txt is: start_s source destination size_bytes. Prints the CPU seconds of the simulation without the
 * reading of its input, then the time at which each message has arrived, in the order of the list; -1 for those on their way at UNTIL_S.
 */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;

struct Flow {
  double start;
  sg4::Host* source;
  sg4::Host* destination;
  uint64_t size;
};

static std::vector<Flow> flows;
static std::vector<sg4::CommPtr> comms;

static void send_all()
{
  std::map<double, std::vector<size_t>> by_start;
  for (size_t i = 0; i < flows.size(); i++)
    by_start[flows[i].start].push_back(i);
  for (auto const& [start, numbers] : by_start) {
    sg4::this_actor::sleep_until(start);
    for (size_t i : numbers)
      comms[i] = sg4::Comm::sendto_async(flows[i].source, flows[i].destination, flows[i].size);
  }
  for (auto& comm : comms)
    comm->wait();
}

int main(int argc, char** argv)
{
  sg4::Engine engine(&argc, argv);
  engine.load_platform(argv[1]);
  std::ifstream list(argv[2]);
  double start;
  std::string source, destination;
  uint64_t size;
  while (list >> start >> source >> destination >> size)
    flows.push_back({start, sg4::Host::by_name(source), sg4::Host::by_name(destination), size});
  comms.resize(flows.size());
  sg4::Actor::create("sender", engine.get_all_hosts().front(), send_all);
  clock_t before = clock();
  engine.run_until(std::stod(argv[3]));
  printf("%.9g\n", (double)(clock() - before) / CLOCKS_PER_SEC);
  for (auto const& comm : comms)
    printf("%.17g\n", comm->get_finish_time());
  fflush(stdout);
  _Exit(0); // without tidying up: messages on their way would be complained about
}
