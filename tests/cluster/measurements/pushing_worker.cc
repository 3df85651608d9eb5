// A worker that computes nothing: the real session and exchange, and gradients and parameters in
// files that many of them share, so that 64 fit on one machine with a large model.
//
//   pushing_worker CHIEF INDEX GRADIENTS PARAMETERS PULLED PUSHED
//
// With PULLED answers of a ps received, or with PUSHED chunks of its first step pushed, it stops
// itself (SIGSTOP), and goes on with SIGCONT; 0: never.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/base/status_macros.h"
#include "common/daemon/process/incarnation.h"
#include "common/job/job.h"
#include "common/job/job_shard_map.h"
#include "common/log/logging.h"
#include "common/model/keras_model.h"
#include "common/rpc/grpc/grpc_network.h"
#include "common/step_plan/step_plan.h"
#include "worker/session/worker_session.h"
#include "worker/step/step_computer.h"

namespace shoal {
namespace {

// `size` floats of a file that is made that large; all that map it share the memory.
absl::StatusOr<std::span<float>> MapFile(const std::string& path, size_t size) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  if (ftruncate(fd, static_cast<off_t>(size * sizeof(float))) != 0)
    return absl::ErrnoToStatus(errno, path);
  void* const memory =
      mmap(nullptr, size * sizeof(float), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, path);
  return std::span(static_cast<float*>(memory), size);
}

// That it says it sees.
constexpr uint64_t kExamples = 8;

// Stops this process with the answer of a ps that has this number, from 1; what it has asked for
// besides is on its way then, or waits there.
class StoppingNetwork : public Network {
 public:
  StoppingNetwork(Network* network, int stop_at) : network_(network), stop_at_(stop_at) {}
  std::unique_ptr<Stream> Open(const ServerAddress& server, const std::string& method,
                               StreamCallbacks callbacks) override {
    if (method == kExchangeMethod) {
      callbacks.on_message = [this, on_message = std::move(callbacks.on_message)](Message message) {
        if (++received_ == stop_at_) raise(SIGSTOP);
        on_message(std::move(message));
      };
    }
    return network_->Open(server, method, std::move(callbacks));
  }
  absl::StatusOr<std::string> Listen(const std::string& address, Acceptor acceptor) override {
    return network_->Listen(address, std::move(acceptor));
  }

 private:
  Network* const network_;
  const int stop_at_;
  int received_ = 0;
};

// Every gradient is what the file says, and there at once. Loop thread only.
class FileComputer : public StepComputer {
 public:
  struct Options {
    EventLoop* loop = nullptr;
    std::string gradients;
    std::string parameters;
    int stop_after = 0;  // chunks
  };
  explicit FileComputer(Options options) : options_(std::move(options)) {}

  void Prepare(const std::string& job_text, int ps_count,
               std::function<void(absl::StatusOr<Prepared>)> done) override {
    options_.loop->Post([this, job_text, ps_count, done = std::move(done)] {
      done(PrepareNow(job_text, ps_count));
    });
  }
  void Prefetch(uint64_t, uint64_t) override {}
  void CancelPrefetch() override {}
  void CancelAll() override {}
  void PrefetchEvaluation(uint64_t) override {}
  void CancelEvaluationPrefetch() override {}
  void Train(uint64_t, std::vector<ChunkId>, std::function<void(int ps, int chunk)> on_chunk,
             std::function<void(absl::StatusOr<BatchOutcome>)> done) override {
    PushFrom(0, std::move(on_chunk), std::move(done));
  }
  void Evaluate(uint64_t, std::function<void(absl::StatusOr<BatchOutcome>)> done) override {
    done(absl::InternalError("there is no test set"));
  }

 private:
  absl::StatusOr<Prepared> PrepareNow(const std::string& job_text, int ps_count) {
    SHOAL_ASSIGN_OR_RETURN(const Job job, ParseResolvedJob(job_text, "the coordinator's job"));
    SHOAL_ASSIGN_OR_RETURN(const KerasModel model, ParseKerasModel(job.model_json));
    SHOAL_ASSIGN_OR_RETURN(ShardMap shard_map, ShardMapOf(job, model.graph.variables(), ps_count));
    shard_map_ = std::make_unique<ShardMap>(std::move(shard_map));
    for (int ps = 0; ps < ps_count; ++ps) {
      for (int i = 0; i < static_cast<int>(shard_map_->ps(ps).chunks.size()); ++i)
        chunks_.emplace_back(ps, i);
    }
    layout_ = ModelLayout(model.graph.variables());
    SHOAL_ASSIGN_OR_RETURN(const std::span<float> gradients,
                           MapFile(options_.gradients, layout_.size));
    SHOAL_ASSIGN_OR_RETURN(const std::span<float> parameters,
                           MapFile(options_.parameters, layout_.size));
    const StepPlan plan(kExamples, job.batch_size, job.epochs, job.steps);
    return Prepared{.training_examples = kExamples,
                    .total_steps = plan.total_steps(),
                    .shard_map = shard_map_.get(),
                    .layout = &layout_,
                    .parameters = parameters,
                    .gradients = gradients};
  }

  // A chunk a callback, so that what was pushed is on its way when this process stops.
  void PushFrom(size_t next, std::function<void(int ps, int chunk)> on_chunk,
                std::function<void(absl::StatusOr<BatchOutcome>)> done) {
    if (next == chunks_.size()) return done(BatchOutcome{.examples = 1});
    if (options_.stop_after > 0 && next == static_cast<size_t>(options_.stop_after) &&
        !std::exchange(stopped_, true)) {
      raise(SIGSTOP);
    }
    on_chunk(chunks_[next].first, chunks_[next].second);
    options_.loop->Post([this, next, on_chunk = std::move(on_chunk), done = std::move(done)] {
      PushFrom(next + 1, on_chunk, done);
    });
  }

  const Options options_;
  std::unique_ptr<ShardMap> shard_map_;
  ModelLayout layout_;
  std::vector<std::pair<int, int>> chunks_;
  bool stopped_ = false;
};

int Run(const std::string& coordinator, uint32_t index, int stop_pulling,
        FileComputer::Options files) {
  StartLogging({.task = "worker-" + std::to_string(index)});
  const std::unique_ptr<GrpcNetwork> network = GrpcNetwork::Create({});
  files.loop = network->loop();
  FileComputer computer(std::move(files));
  StoppingNetwork stopping(network.get(), stop_pulling);
  absl::Status result;
  WorkerSession session({.loop = network->loop(),
                         .network = &stopping,
                         .computer = &computer,
                         .coordinator = coordinator,
                         .index = index,
                         .incarnation = DrawIncarnation(),
                         .pid = static_cast<uint64_t>(getpid()),
                         .on_over = [&](WorkerSession::End, const absl::Status& status) {
                           result = status;
                           network->loop()->Stop();
                         }});
  session.Start();
  network->Run();
  if (!result.ok()) LogError(std::string(result.message()));
  return result.ok() ? 0 : 1;
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  uint32_t index = 0;
  int pulled = 0;
  int pushed = 0;
  if (argc != 7 || !absl::SimpleAtoi(argv[2], &index) || !absl::SimpleAtoi(argv[5], &pulled) ||
      !absl::SimpleAtoi(argv[6], &pushed)) {
    std::fputs("usage: pushing_worker CHIEF INDEX GRADIENTS PARAMETERS PULLED PUSHED\n", stderr);
    return 64;
  }
  return shoal::Run(argv[1], index, pulled == 0 ? 0 : pulled + 1,  // after the hello
                    {.gradients = argv[3], .parameters = argv[4], .stop_after = pushed});
}
