#include "tests/simulation/simulated/simulated_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "common/rpc/methods.h"
#include "tests/simulation/simulated/simulated_process.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using testing::IsSupersetOf;

class SimulatedNetworkTest : public testing::Test, public SimulatedNetwork::Observer {
 protected:
  void OnSent(SimulatedProcess&, const std::string&, bool, const Message&) override {}
  void OnReceived(SimulatedProcess&, const std::string&, const std::string&, bool,
                  const Message&) override {}
  void OnFinished(SimulatedProcess&, const std::string&, const absl::Status&) override {}

  // Sends ten messages from a client to a server and calls `then` after `wait`. Returns the
  // messages that have arrived, with "closed" if the server's end was closed.
  template <typename Then>
  std::string Arrivals(uint64_t seed, Time wait, Then then) {
    World world(seed, false);
    SimulatedNetwork network(&world, this);
    SimulatedProcess client({.world = &world, .network = &network, .name = "a", .host = "a"});
    SimulatedProcess server({.world = &world, .network = &network, .name = "b", .host = "b"});
    std::string arrived;
    std::unique_ptr<Stream> accepted;
    (void)server.Listen("b", [&](const std::string&, std::unique_ptr<Stream> stream) {
      accepted = std::move(stream);
      return StreamCallbacks{
          .on_message = [&](const Message& message) { arrived += message.fields; },
          .on_closed = [&](const absl::Status&) { arrived += " closed"; }};
    });
    std::unique_ptr<Stream> stream = network.Open(&client, "b", kWorkMethod, {});
    for (char digit = '0'; digit <= '9'; ++digit) stream->Send({.fields = std::string(1, digit)});
    world.After(wait, [&] { then(network, server, stream); });
    while (world.RunNext()) {
    }
    client.Kill();
    server.Kill();
    network.ProcessGone(&client, false, milliseconds(1));
    network.ProcessGone(&server, false, milliseconds(1));
    return arrived;
  }
};

TEST_F(SimulatedNetworkTest, AStreamDeliversInOrder) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(Arrivals(seed, Time(1000), [](auto&...) {}), "0123456789");
  }
}

TEST_F(SimulatedNetworkTest, ABrokenStreamLosesATail) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    seen.insert(Arrivals(seed, Time(100'000),
                         [](SimulatedNetwork& network, SimulatedProcess& server, auto&) {
                           network.BreakAll(&server, milliseconds(1));
                         }));
  }
  EXPECT_THAT(seen, IsSupersetOf({"0 closed", "01234 closed", "0123456789 closed"}));
  for (const std::string& arrived : seen) {
    EXPECT_EQ(
        std::string("0123456789").compare(0, arrived.find(' '), arrived, 0, arrived.find(' ')),
        arrived.empty() ? 1 : 0)
        << arrived;
  }
}

TEST_F(SimulatedNetworkTest, WhatACutHoldsUpArrivesWhenItIsMended) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(Arrivals(seed, Time(100'000),
                       [](SimulatedNetwork& network, SimulatedProcess& server, auto&) {
                         network.Cut("a", "b");
                         server.world().After(std::chrono::seconds(3),
                                              [&network] { network.Mend("a", "b"); });
                       }),
              "0123456789");
  }
}

// The client reopens nothing, and the stream ends with its old certificate.
TEST_F(SimulatedNetworkTest, AClientIsToldOfNewCertificatesUntilItsStreamEnds) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    for (const bool own : {true, false}) {
      World world(seed, false);
      SimulatedNetwork network(&world, this);
      SimulatedProcess client({.world = &world, .network = &network, .name = "a", .host = "a"});
      SimulatedProcess server({.world = &world, .network = &network, .name = "b", .host = "b"});
      std::unique_ptr<Stream> accepted;
      (void)server.Listen("b", [&](const std::string&, std::unique_ptr<Stream> stream) {
        accepted = std::move(stream);
        return StreamCallbacks{.on_closed = [](const absl::Status&) {}};
      });
      int told = 0;
      bool closed = false;
      const std::unique_ptr<Stream> stream = network.Open(
          &client, "b", kWorkMethod,
          {.on_outdated = [&told] { ++told; },
           .on_closed = [&closed](const absl::Status& status) { closed = !status.ok(); }});
      world.After(milliseconds(100), [&] {
        network.ReplaceCertificates(own ? &client : &server, milliseconds(2500));
      });
      while (world.RunNext()) {
      }
      EXPECT_TRUE(closed) << seed;
      EXPECT_GE(told, own ? 3 : 2) << seed;
      EXPECT_LE(told, 3) << seed;
      client.Kill();
      server.Kill();
    }
  }
}

TEST_F(SimulatedNetworkTest, AFrozenProcessReceivesWhenItGoesOn) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(Arrivals(seed, Time(100'000),
                       [](SimulatedNetwork&, SimulatedProcess& server, auto&) {
                         server.Freeze();
                         server.world().After(std::chrono::seconds(3),
                                              [&server] { server.Thaw(); });
                       }),
              "0123456789");
  }
}

}  // namespace
}  // namespace shoal
