// A worker that computes nothing: the real session and exchange, and gradients and parameters in
// files that many of them share, so that 64 fit on one machine with a large model.
//
//   pushing_worker CHIEF INDEX GRADIENTS PARAMETERS STOP_AFTER
//
// With STOP_AFTER chunks of its first step pushed it stops itself (SIGSTOP), and goes on with
// SIGCONT; 0: never.

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
#include "common/daemon/incarnation.h"
#include "common/daemon/logging.h"
#include "common/job/job.h"
#include "common/model/keras_model.h"
#include "common/rpc/grpc_network.h"
#include "worker/step_computer.h"
#include "worker/worker_session.h"

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
  void Expect(uint64_t, uint64_t) override {}
  void Forget() override {}
  void Train(uint64_t, std::function<void(int ps, int chunk)> on_chunk,
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
    shard_map_ =
        std::make_unique<ShardMap>(model.graph.variables(), ps_count,
                                   ShardingOptions{.min_shard_bytes = job.strategy.min_shard_bytes,
                                                   .chunk_bytes = job.strategy.chunk_bytes});
    for (int ps = 0; ps < ps_count; ++ps) {
      for (int i = 0; i < static_cast<int>(shard_map_->ps(ps).chunks.size()); ++i)
        chunks_.emplace_back(ps, i);
    }
    layout_ = ModelLayout(model.graph.variables());
    SHOAL_ASSIGN_OR_RETURN(const std::span<float> gradients,
                           MapFile(options_.gradients, layout_.size));
    SHOAL_ASSIGN_OR_RETURN(const std::span<float> parameters,
                           MapFile(options_.parameters, layout_.size));
    return Prepared{.training_examples = 8,
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

int Run(const std::string& chief, uint32_t index, FileComputer::Options files) {
  StartLogging({.task = "worker-" + std::to_string(index)});
  const std::unique_ptr<GrpcNetwork> network = GrpcNetwork::Create({});
  files.loop = network.get();
  FileComputer computer(std::move(files));
  absl::Status result;
  WorkerSession session({.loop = network.get(),
                         .network = network.get(),
                         .computer = &computer,
                         .chief = chief,
                         .index = index,
                         .incarnation = DrawIncarnation(),
                         .pid = static_cast<uint64_t>(getpid()),
                         .on_over = [&](WorkerSession::End, const absl::Status& status) {
                           result = status;
                           network->Stop();
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
  int stop_after = 0;
  if (argc != 6 || !absl::SimpleAtoi(argv[2], &index) || !absl::SimpleAtoi(argv[5], &stop_after)) {
    std::fputs("usage: pushing_worker CHIEF INDEX GRADIENTS PARAMETERS STOP_AFTER\n", stderr);
    return 64;
  }
  return shoal::Run(argv[1], index,
                    {.gradients = argv[3], .parameters = argv[4], .stop_after = stop_after});
}
