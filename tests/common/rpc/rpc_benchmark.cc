// What the gRPC network carries between processes of one machine: a ps that takes gradient chunks
// and answers with parameter chunks, and workers that wait for all answers before the next step.
// Prints GB/s of both ways together, and steps/s with empty payloads.
//
//   rpc_benchmark [WORKERS [ADDRESS]]     e.g. rpc_benchmark 2 unix:/tmp/benchmark.sock

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/grpc/grpc_network.h"
#include "proto/parameter_server.pb.h"

namespace shoal {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr int kChunks = 40;
constexpr std::chrono::seconds kDuration{2};

using Slab = std::shared_ptr<std::vector<char>>;

Slab MakeSlab() { return std::make_shared<std::vector<char>>(kChunkBytes * kChunks, 1); }

Slice ChunkOf(const Slab& slab, uint32_t chunk) {
  return {slab->data() + chunk * kChunkBytes, kChunkBytes, slab};
}

// Serves until it is killed; writes its address to `ready`.
void ServePs(const std::string& address, int ready) {
  const std::unique_ptr<GrpcNetwork> network = GrpcNetwork::Create({});
  const Slab parameters = MakeSlab();
  std::vector<char> gradients(kChunkBytes * kChunks);
  const absl::StatusOr<std::string> bound =
      network->Listen(address, [&](const std::string&, std::unique_ptr<Stream> stream) {
        std::shared_ptr<Stream> shared = std::move(stream);
        return StreamCallbacks{.on_message =
                                   [&, shared](Message message) {
                                     proto::ExchangeRequest request;
                                     if (!ParseMessage(message, &request)) std::abort();
                                     const uint32_t chunk = request.push().chunk();
                                     const size_t bytes = message.payload_bytes();
                                     CopyPayload(message, 0, gradients.data() + chunk * kChunkBytes,
                                                 bytes);
                                     proto::ExchangeReply reply;
                                     reply.mutable_applied()->set_step(request.push().step());
                                     reply.mutable_applied()->set_chunk(chunk);
                                     std::vector<Slice> payload;
                                     if (bytes > 0) payload.push_back(ChunkOf(parameters, chunk));
                                     shared->Send(MakeMessage(reply, std::move(payload)));
                                   },
                               .on_closed = {}};
      });
  if (!bound.ok()) {
    std::fprintf(stderr, "%s\n", std::string(bound.status().message()).c_str());
    std::_Exit(1);
  }
  if (write(ready, bound->data(), bound->size()) < 0) std::_Exit(1);
  close(ready);
  network->Run();
}

// Does steps of so many chunks for kDuration; the rate in steps/s.
double Work(const std::string& address, int chunks, bool with_payload) {
  const std::unique_ptr<GrpcNetwork> network = GrpcNetwork::Create({});
  EventLoop* const loop = network->loop();
  const Slab gradients = MakeSlab();
  std::vector<char> parameters(kChunkBytes * kChunks);
  uint64_t step = 0;
  int waiting = 0;
  std::unique_ptr<Stream> stream;
  const auto push_all = [&] {
    waiting = chunks;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      proto::ExchangeRequest request;
      request.mutable_push()->set_step(step);
      request.mutable_push()->set_chunk(chunk);
      std::vector<Slice> payload;
      if (with_payload) payload.push_back(ChunkOf(gradients, chunk));
      stream->Send(MakeMessage(request, std::move(payload)));
    }
  };
  const Time start = loop->Now();
  stream = network->Open(
      address, kExchangeMethod,
      {.on_message =
           [&](Message message) {
             proto::ExchangeReply reply;
             if (!ParseMessage(message, &reply)) std::abort();
             CopyPayload(message, 0, parameters.data() + reply.applied().chunk() * kChunkBytes,
                         message.payload_bytes());
             if (--waiting > 0) return;
             ++step;
             if (loop->Now() - start > kDuration) return loop->Stop();
             push_all();
           },
       .on_closed =
           [&](absl::Status status) {
             std::fprintf(stderr, "%s\n", status.ToString().c_str());
             loop->Stop();
           }});
  push_all();
  network->Run(Time::zero());
  return static_cast<double>(step) / std::chrono::duration<double>(loop->Now() - start).count();
}

// Runs the workers as processes and sums their rates.
double RunWorkers(int workers, const std::string& address, int chunks, bool with_payload) {
  int rates[2];
  if (pipe(rates) != 0) std::abort();
  for (int i = 0; i < workers; ++i) {
    if (fork() == 0) {
      const double rate = Work(address, chunks, with_payload);
      if (write(rates[1], &rate, sizeof(rate)) < 0) std::_Exit(1);
      std::_Exit(0);
    }
  }
  close(rates[1]);
  double sum = 0;
  double rate = 0;
  while (read(rates[0], &rate, sizeof(rate)) == sizeof(rate)) sum += rate;
  close(rates[0]);
  for (int i = 0; i < workers; ++i) wait(nullptr);
  return sum;
}

int Main(int argc, char** argv) {
  const int workers = argc > 1 ? std::atoi(argv[1]) : 1;
  const std::string wanted = argc > 2 ? argv[2] : "127.0.0.1:0";
  // Every process starts gRPC afresh, so fork comes first.
  int ready[2];
  if (pipe(ready) != 0) std::abort();
  const pid_t ps = fork();
  if (ps == 0) {
    close(ready[0]);
    ServePs(wanted, ready[1]);
    std::_Exit(0);
  }
  close(ready[1]);
  char address[256] = {};
  if (read(ready[0], address, sizeof(address) - 1) <= 0) return 1;
  const double steps = RunWorkers(workers, address, kChunks, true);
  std::printf("%d workers, %d chunks of %zu bytes both ways: %.2f GB/s\n", workers, kChunks,
              kChunkBytes, steps * 2 * kChunks * static_cast<double>(kChunkBytes) / 1e9);
  const double null_steps = RunWorkers(workers, address, 1, false);
  std::printf("%d workers, empty steps: %.0f/s\n", workers, null_steps);
  const double many = RunWorkers(workers, address, 8, false);
  std::printf("%d workers, empty messages, 8 outstanding: %.0f/s\n", workers, 8 * many);
  kill(ps, SIGKILL);
  wait(nullptr);
  return 0;
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) { return shoal::Main(argc, argv); }
