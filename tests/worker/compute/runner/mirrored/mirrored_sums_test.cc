// Replicas whose devices add up their gradients, on fake devices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/worker/compute/device/fake_device.h"
#include "tests/worker/compute/device/fake_device_backend.h"
#include "tests/worker/compute/device/fake_gradient_reducer.h"
#include "tests/worker/compute/expect_near.h"
#include "tests/worker/compute/late_parameters.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "worker/compute/program/page_aligned.h"
#include "worker/compute/reference/reference_backend.h"
#include "worker/compute/runner/graph_runner.h"
#include "worker/compute/runner/mirrored/mirrored_runner.h"

namespace shoal {
namespace {

using ::testing::_;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Pair;

// Orders of what the streams do.
constexpr uint64_t kSumSeeds = 20;

class FailsWhileTold : public Kernel {
 public:
  explicit FailsWhileTold(const std::atomic<bool>* failing) : failing_(*failing) {}
  absl::Status Run(const RunContext*, std::span<void* const>) override {
    return failing_ ? absl::InternalError("the kernel of this test fails") : absl::OkStatus();
  }

 private:
  const std::atomic<bool>& failing_;
};

// One whose programs fail at their end, as long as `failing` says so; null: never.
class SomeBackend : public FakeDeviceBackend {
 public:
  SomeBackend(std::unique_ptr<FakeDevice> device, const std::atomic<bool>* failing)
      : FakeDeviceBackend(std::move(device), /*min_copied_bytes=*/64), failing_(failing) {}

 protected:
  absl::Status AddSteps(ProgramBuilder& builder) const override {
    SHOAL_RETURN_IF_ERROR(FakeDeviceBackend::AddSteps(builder));
    if (failing_ != nullptr) builder.AddStep(std::make_unique<FailsWhileTold>(failing_), {});
    return absl::OkStatus();
  }

 private:
  const std::atomic<bool>* const failing_;
};

// So many examples on so many devices, of which each computes that many at once; 0: all.
struct Case {
  int replicas;
  int64_t examples, micro_batch_size;
};
// Two parts each; two or three; two on one device and all at once on the other.
constexpr Case kInMicroBatches[] = {{2, 8, 2}, {3, 13, 2}, {2, 9, 4}};

Graph UnbranchedModel() {
  ModelBuilding model({kBatch, 6, 6, 2});
  model.Conv2D(3, {.size = {3, 3}, .padding = Padding::kSame}).BatchNormalization().Relu();
  return model.Flatten().Dropout(0.3).Dense(6).Relu().Dense(4).Build();
}

class MirroredSumsTest : public ::testing::Test {
 protected:
  static ModelRunner::Options Options(int64_t micro_batch_size = 0) {
    return {.model = UnbranchedModel(),
            .loss = kSparse,
            .micro_batch_size = micro_batch_size,
            .seed = 3};
  }
  // A replica for each of `fails`, which says whether its programs do.
  std::unique_ptr<MirroredRunner> Make(uint64_t seed, const std::vector<bool>& fails,
                                       bool sums = true, int64_t micro_batch_size = 0) {
    std::vector<MirroredRunner::ReplicaDevice> devices;
    devices_.resize(fails.size());
    backends_.resize(fails.size());
    for (size_t i = 0; i < fails.size(); ++i) {
      devices.push_back({.name = absl::StrCat("fake:", i), .create = [this, seed, i, &fails] {
                           auto device = std::make_unique<FakeDevice>(10 * seed + i);
                           devices_[i] = device.get();
                           auto backend = std::make_unique<SomeBackend>(
                               std::move(device), fails[i] ? &failing_ : nullptr);
                           backends_[i] = backend.get();
                           return absl::StatusOr<std::unique_ptr<Backend>>(std::move(backend));
                         }});
    }
    const auto create_sums = [&] {
      auto created = std::make_unique<FakeGradientReducer>(static_cast<int>(fails.size()));
      sums_ = created.get();
      return created;
    };
    auto runner = MirroredRunner::Create(Options(micro_batch_size), devices,
                                         sums ? MirroredRunner::CreateSums(create_sums) : nullptr);
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }
  struct Trained {
    absl::Status status;
    PageAlignedFloats gradients;
    std::vector<int> done;
    std::map<int, int> awaits;  // times that parameters were awaited, by variable
  };
  // `arrive`: parameters are there when they are awaited, and no earlier.
  Trained Train(ModelRunner& runner, int64_t examples, bool arrive = false) {
    std::mt19937 random(7);
    const RandomBatch data(random, UnbranchedModel(), *kSparse, examples);
    PageAlignedFloats parameters(runner.layout().size);
    for (float& value : parameters) value = 0.01f * static_cast<float>(random() % 40);
    Trained trained = {.gradients = PageAlignedFloats(parameters.size())};
    LateParameters late(runner.layout(), parameters);
    const std::span<float> buffer = arrive ? late.buffer() : parameters;
    const auto pinned = runner.Pin(buffer), pinned_gradients = runner.Pin(trained.gradients);
    EXPECT_TRUE(pinned.ok() && pinned_gradients.ok());
    const auto on_done = [&](int variable) { trained.done.push_back(variable); };
    trained.status =
        runner.Train(data.batch(), 1, buffer, trained.gradients, on_done, arrive ? &late : nullptr)
            .status();
    trained.awaits = late.awaits();
    return trained;
  }
  // What runs leave on the devices is nothing for those that follow.
  void PoisonAll() {
    for (Backend* backend : backends_) EXPECT_TRUE(backend->Poison(0).ok());
  }
  // What the host makes of the same parts.
  PageAlignedFloats Expected(int64_t examples, int64_t largest_part) {
    const auto runner = *GraphRunner::Create(Options(largest_part), CreateReferenceBackend());
    return Train(*runner, examples).gradients;
  }
  PageAlignedFloats Expected(const Case& of) {
    const auto create = [] {
      return absl::StatusOr<std::unique_ptr<Backend>>(CreateReferenceBackend());
    };
    const auto runner = *MirroredRunner::Create(
        Options(of.micro_batch_size), std::vector<MirroredRunner::ReplicaDevice>(
                                          of.replicas, {.name = "reference", .create = create}));
    return Train(*runner, of.examples).gradients;
  }
  // By a stream of a device.
  static int64_t BytesCopied(const std::string& stream, FakeDevice& device) {
    const std::string copy = stream + ": copy ";
    int64_t sum = 0;
    for (const std::string& line : device.log()) {
      int64_t bytes = 0;
      if (line.starts_with(copy) && absl::SimpleAtoi(line.substr(copy.size()), &bytes))
        sum += bytes;
    }
    return sum;
  }

  std::vector<FakeDevice*> devices_;     // of the last runner
  std::vector<Backend*> backends_;       // likewise
  FakeGradientReducer* sums_ = nullptr;  // likewise
  std::atomic<bool> failing_ = true;
};

TEST_F(MirroredSumsTest, InAnyOrderTheSumIsThatOfTheHost) {
  for (const auto& [replicas, examples] : {std::pair(2, 5), std::pair(3, 8)}) {
    const PageAlignedFloats expected = Expected(examples, /*largest_part=*/3);
    for (uint64_t seed = 0; seed < kSumSeeds; ++seed) {
      SCOPED_TRACE(absl::StrCat(examples, " examples on ", replicas, ", seed ", seed));
      const auto runner = Make(seed, std::vector<bool>(replicas));
      for (int run = 0; run < 3; ++run) {  // given, recorded, played
        const Trained trained = Train(*runner, examples);
        ASSERT_TRUE(trained.status.ok()) << trained.status;
        ExpectNear(trained.gradients, expected, 1e-5, 1e-6, "gradients");
        EXPECT_EQ(trained.done.size(), runner->layout().variables.size());
      }
      EXPECT_GT(sums_->reduces(), 0);
    }
  }
}

// The other device's gradients stay where they are. The host's memory for them counts all the same,
// as a batch with fewer examples wants it.
TEST_F(MirroredSumsTest, TheFirstDeviceAloneCopiesGradientsOut) {
  for (const int64_t micro_batch_size : {0, 2}) {
    const auto host = Make(0, {false, false}, /*sums=*/false, micro_batch_size);
    const int64_t host_bytes = host->MemoryOfBatch(6)->activations;
    const auto runner = Make(0, {false, false}, /*sums=*/true, micro_batch_size);
    EXPECT_EQ(runner->MemoryOfBatch(6)->activations, host_bytes);
    ASSERT_TRUE(Train(*runner, 6).status.ok());
    int64_t pushed = 0;
    for (const auto& extent : runner->layout().variables) {
      pushed += extent.size * static_cast<int64_t>(sizeof(float));
    }
    EXPECT_EQ(BytesCopied("out", *devices_[0]) - BytesCopied("out", *devices_[1]), pushed);
  }
}

// With the first part parameters, with the others inputs alone.
TEST_F(MirroredSumsTest, DevicesReadWhatTheyDoWhereTheHostAddsUp) {
  for (const int64_t micro_batch_size : {0, 1}) {
    std::vector<int64_t> bytes;
    for (const bool sums : {false, true}) {
      const auto runner = Make(0, {false, false}, sums, micro_batch_size);
      ASSERT_TRUE(Train(*runner, 6).status.ok());
      for (FakeDevice* device : devices_) bytes.push_back(BytesCopied("in", *device));
    }
    EXPECT_EQ(bytes[2], bytes[0]);
    EXPECT_EQ(bytes[3], bytes[1]);
  }
}

TEST_F(MirroredSumsTest, TheHostAddsUpWhereADeviceHasNoPart) {
  const auto runner = Make(0, {false, false, false}, /*sums=*/true, /*micro_batch_size=*/1);
  const Trained two = Train(*runner, 2);
  ASSERT_TRUE(two.status.ok()) << two.status;
  EXPECT_EQ(two.gradients, Expected(2, 1));
  EXPECT_EQ(sums_->reduces(), 0);
}

// Among devices a step has as many sums as one without micro batches. They are those of the host in
// runs that are given, recorded and played, and where parameters are still arriving; these are then
// awaited once.
TEST_F(MirroredSumsTest, DevicesAddUpTheirSumsOfMicroBatchesOnce) {
  for (const Case& each : kInMicroBatches) {
    const auto at_once = Make(0, std::vector<bool>(each.replicas));
    ASSERT_TRUE(Train(*at_once, each.examples).status.ok());
    const int reduces = sums_->reduces();
    EXPECT_GT(reduces, 0);
    const PageAlignedFloats expected = Expected(each);
    for (uint64_t seed = 0; seed < kSumSeeds; ++seed) {
      SCOPED_TRACE(absl::StrCat(each.examples, " examples on ", each.replicas, ", at once ",
                                each.micro_batch_size, ", seed ", seed));
      const auto runner =
          Make(seed, std::vector<bool>(each.replicas), /*sums=*/true, each.micro_batch_size);
      for (int run = 0; run < 4; ++run) {
        const bool arrive = run == 3;
        const Trained trained = Train(*runner, each.examples, arrive);
        ASSERT_TRUE(trained.status.ok()) << trained.status;
        ExpectNear(trained.gradients, expected, 1e-5, 1e-6, "gradients");
        EXPECT_EQ(trained.done.size(), runner->layout().variables.size());
        EXPECT_EQ(sums_->reduces(), (run + 1) * reduces);
        EXPECT_EQ(sums_->meetings(), run + 1);
        EXPECT_EQ(trained.awaits.size(), arrive ? runner->layout().variables.size() : 0);
        EXPECT_THAT(trained.awaits, Each(Pair(_, 1)));
        PoisonAll();
      }
    }
  }
}

// To the last bit. Each device awaits what it reads, and only before the first of its parts.
TEST_F(MirroredSumsTest, TheHostAddsUpTheDevicesSumsOfMicroBatches) {
  for (const Case& each : kInMicroBatches) {
    const PageAlignedFloats expected = Expected(each);
    for (uint64_t seed = 0; seed < kSumSeeds; ++seed) {
      SCOPED_TRACE(absl::StrCat(each.examples, " examples on ", each.replicas, ", at once ",
                                each.micro_batch_size, ", seed ", seed));
      const auto runner =
          Make(seed, std::vector<bool>(each.replicas), /*sums=*/false, each.micro_batch_size);
      for (const bool arrive : {false, true, false, true}) {
        const Trained trained = Train(*runner, each.examples, arrive);
        ASSERT_TRUE(trained.status.ok()) << trained.status;
        EXPECT_EQ(trained.gradients, expected);
        EXPECT_EQ(trained.done.size(), runner->layout().variables.size());
        EXPECT_EQ(trained.awaits.empty(), !arrive);
        EXPECT_THAT(trained.awaits, Each(Pair(_, each.replicas)));
        PoisonAll();
      }
    }
  }
}

// And whoever fails is named, not those that waited for it. The next step is added up by the host.
TEST_F(MirroredSumsTest, ADeviceThatFailsHangsNobody) {
  for (const int64_t micro_batch_size : {0, 2}) {
    const PageAlignedFloats expected = Expected({3, 8, micro_batch_size});
    for (uint64_t seed = 0; seed < kSumSeeds; ++seed) {
      for (size_t failing = 0; failing < 3; ++failing) {
        SCOPED_TRACE(
            absl::StrCat("at once ", micro_batch_size, ", seed ", seed, ", device ", failing));
        std::vector<bool> fails(3);
        fails[failing] = true;
        const auto runner = Make(seed, fails, /*sums=*/true, micro_batch_size);
        EXPECT_EQ(Train(*runner, 7).status.ToString(),
                  absl::StrCat("INTERNAL: replica ", failing, " on fake:", failing,
                               ": the kernel of this test fails"));
        for (const FakeDevice* device : devices_) EXPECT_TRUE(device->idle());
        failing_ = false;
        const Trained next = Train(*runner, 8);
        EXPECT_TRUE(next.status.ok()) << next.status;
        EXPECT_EQ(next.gradients, expected);
        failing_ = true;
      }
    }
  }
}

// Sums that were given never end of themselves. Whose link has failed finds out while it waits, be
// it the one that they wait for, and the step ends with its name.
TEST_F(MirroredSumsTest, ALinkThatFailsInTheMidstOfASumHangsNobody) {
  for (const int64_t micro_batch_size : {0, 2}) {
    const PageAlignedFloats expected = Expected({3, 8, micro_batch_size});
    for (uint64_t seed = 0; seed < kSumSeeds; ++seed) {
      for (const int failing : {0, 1, 2}) {
        SCOPED_TRACE(
            absl::StrCat("at once ", micro_batch_size, ", seed ", seed, ", device ", failing));
        const auto runner = Make(seed, std::vector<bool>(3), /*sums=*/true, micro_batch_size);
        sums_->HoldUp(1);
        sums_->FailLink(failing);
        const Trained trained = Train(*runner, 7);
        EXPECT_EQ(trained.status.ToString(),
                  absl::StrCat("UNAVAILABLE: replica ", failing, " on fake:", failing,
                               ": the link of this test fails"));
        EXPECT_THAT(trained.done, IsEmpty());
        for (const FakeDevice* device : devices_) EXPECT_TRUE(device->idle());
        const Trained next = Train(*runner, 8);
        EXPECT_TRUE(next.status.ok()) << next.status;
        EXPECT_EQ(next.gradients, expected);
      }
    }
  }
}

// A device has failed after its part of a sum was taken, and another never gave its own.
TEST_F(MirroredSumsTest, ASumThatWasAbortedIsSaidToNobody) {
  for (uint64_t seed = 0; seed < kSumSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto runner = Make(seed, {false, false, true});
    sums_->HoldUp(1);
    const Trained trained = Train(*runner, 7);
    EXPECT_FALSE(trained.status.ok());
    EXPECT_TRUE(trained.done.empty());
  }
}

}  // namespace
}  // namespace shoal
