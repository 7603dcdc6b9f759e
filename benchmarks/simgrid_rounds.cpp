// The rounds of node_messages.py for SimGrid: an actor and a mailbox for each worker; prints the simulated and its own CPU seconds.
// Usage: simgrid_rounds WORKERS ROUNDS [--cfg=...]
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg = simgrid::s4u;

static void worker(int index) {
  sg::Mailbox *inbox = sg::Mailbox::by_name("worker-" + std::to_string(index));
  sg::Mailbox *master = sg::Mailbox::by_name("master");
  std::mt19937_64 generator(index);
  std::exponential_distribution<double> draw(1.0);
  while (true) {
    int *round = inbox->get<int>();
    sg::this_actor::sleep_for(draw(generator));
    master->put_init(round, 8)->detach();
  }
}

static void master(int workers, int rounds) {
  sg::Mailbox *inbox = sg::Mailbox::by_name("master");
  std::vector<sg::Mailbox *> boxes;
  for (int index = 0; index < workers; index++)
    boxes.push_back(sg::Mailbox::by_name("worker-" + std::to_string(index)));
  for (int round = 0; round < rounds; round++) {
    for (sg::Mailbox *box : boxes)
      box->put_init(new int(round), 8)->detach();
    for (int index = 0; index < workers; index++)
      delete inbox->get<int>();
  }
}

int main(int argc, char **argv) {
  sg::Engine engine(&argc, argv);
  const int workers = std::atoi(argv[1]), rounds = std::atoi(argv[2]);
  auto *zone = sg::create_full_zone("zone");
  sg::Host *host = zone->create_host("host", 1e9);
  // Each message has the link to itself, as here: nothing is shared, which is SimGrid's fastest case.
  auto *link = zone->create_link("loopback", 1e9)->set_latency(0)->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE);
  zone->add_route(host->get_netpoint(), host->get_netpoint(), nullptr, nullptr, {sg::LinkInRoute(link)});
  zone->seal();
  sg::Actor::create("master", host, master, workers, rounds);
  for (int index = 0; index < workers; index++)
    sg::Actor::create("worker", host, worker, index)->daemonize();
  engine.run();
  std::printf("%.6f %.6f\n", sg::Engine::get_clock(), static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
}
