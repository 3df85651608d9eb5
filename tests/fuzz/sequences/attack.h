#pragma once

#include <google/protobuf/message.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/sequences/fuzz_cluster.h"
#include "tests/fuzz/sequences/input_bytes.h"

namespace shoal {

// Speaks for one peer on one stream, as an honest one would: a fuzz target mutates what it says.
class Speaker {
 public:
  virtual ~Speaker() = default;
  // Returns the message of this kind that an honest peer would send now; any number is a kind.
  virtual std::unique_ptr<google::protobuf::Message> Make(uint8_t kind) = 0;
  // The other end has said this. Returns answers that are not mutated, if this peer answers by
  // itself.
  virtual std::vector<std::unique_ptr<google::protobuf::Message>> Hear(const Message&) {
    return {};
  }
};

// A peer that does what the bytes of an input say, at one end of up to four streams:
//
//   input    = action*
//   action   = op …             op: bits 0-3 the action, 4-5 the stream, 6 the others wait
//     0        send             kind, number of mutations modulo 4, mutations (mutate_message.h)
//     1        open             method; only a client opens
//     2        send these bytes size, bytes
//     3        repeat the last message   how often
//     4        finish           status code
//     5        drop the stream
//     6        stop reading, or begin again
//     7        let time pass    which of eight times
//     8        nothing
//     9-15     like 0
//
// After each action the other tasks run, unless bit 6 is set. The clock stands still meanwhile.
class Attack {
 public:
  struct Options {
    FuzzCluster* cluster = nullptr;  // outlives this
    std::string address;             // of the server that it calls, or where it listens itself
    bool listens = false;
    std::vector<std::string> methods;  // that it calls
    std::function<std::unique_ptr<Speaker>(const std::string& method)> speak;
  };
  explicit Attack(Options options);
  // Breaks its streams.
  ~Attack();

  // Acts until the input is read.
  void Run(InputBytes* input);

 private:
  struct End {  // of a stream
    std::string method;
    std::shared_ptr<Speaker> speaker;
    std::unique_ptr<Stream> stream;
    std::string last;  // message, as bytes
  };

  StreamCallbacks CallbacksFor(const std::shared_ptr<End>& end);
  void Open(size_t stream, const std::string& method);
  void Act(InputBytes* input);
  void Say(End* end, InputBytes* input);
  void Send(End* end, const std::string& bytes);

  const Options options_;
  std::unique_ptr<OneLoopHub::Node> node_;
  // In a client, by number; in a server, the newest four.
  std::array<std::shared_ptr<End>, 4> ends_;
  size_t accepted_ = 0;
  bool held_ = false;
  Time passed_{};
};

}  // namespace shoal
