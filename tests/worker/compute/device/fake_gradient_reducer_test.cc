#include "tests/worker/compute/device/fake_gradient_reducer.h"

#include <deque>
#include <memory>

#include "tests/worker/compute/device/fake_device.h"
#include "tests/worker/compute/device/gradient_reducer_conformance.h"

namespace shoal {
namespace {

// On a FakeDevice each, whose kOut says by an event that the sums before it have ended.
class FakeRanks {
 public:
  static absl::Status CanRun() { return absl::OkStatus(); }

  FakeRanks(int count, int values) : sums_(count) {
    for (int rank = 0; rank < count; ++rank) {
      Rank& made = ranks_.emplace_back();
      made.device = std::make_unique<FakeDevice>(/*seed=*/rank);
      made.memory = *made.device->Allocate(values * static_cast<int64_t>(sizeof(float)));
      made.gradients = {reinterpret_cast<float*>(made.memory->data()), static_cast<size_t>(values)};
      made.added = *made.device->NewEvent();
    }
  }
  ~FakeRanks() {
    sums_.Abort();
    for (const Rank& rank : ranks_) rank.device->Finish();
  }
  GradientReducer& sums() { return sums_; }
  std::span<float> memory(int rank) { return ranks_[rank].gradients; }
  absl::Status Reduce(const SumRank& rank, std::span<float> gradients) {
    const Rank& own = ranks_[rank.rank];
    SHOAL_RETURN_IF_ERROR(sums_.Reduce(rank, *own.device, reinterpret_cast<char*>(gradients.data()),
                                       static_cast<int64_t>(gradients.size_bytes())));
    return own.device->Record(Device::Stream::kOut, *own.added);
  }
  absl::StatusOr<bool> HasEnded(int rank) {
    return ranks_[rank].device->IsComplete(*ranks_[rank].added);
  }
  void Fail(int rank) { sums_.FailLink(rank); }
  static std::string FailureOf(int) { return "the link of this test fails"; }

 private:
  struct Rank {
    ~Rank() { device->UseOnThisThread(); }

    std::unique_ptr<FakeDevice> device;
    std::unique_ptr<Device::Memory> memory;
    std::span<float> gradients;  // all of it
    std::unique_ptr<Device::Event> added;
  };
  FakeGradientReducer sums_;
  std::deque<Rank> ranks_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Fake, GradientReducerConformance, FakeRanks);

}  // namespace
}  // namespace shoal
