#include "worker/compute/runner/mirrored/mirrored_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "tests/worker/compute/device/failing_kernel.h"
#include "tests/worker/compute/device/fake_device.h"
#include "tests/worker/compute/device/fake_device_backend.h"
#include "tests/worker/compute/expect_near.h"
#include "tests/worker/compute/late_parameters.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "tests/worker/compute/runner/expect_equal_results.h"
#include "tests/worker/compute/suite_backends.h"
#include "worker/compute/cuda/runtime/device_survey.h"
#include "worker/compute/reference/reference_backend.h"
#include "worker/compute/registry/backends.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/compute/runner/graph_runner.h"
#include "worker/compute/runner/micro_batches.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Dropout of elements and of channels, which is drawn by an example's place in the batch.
Graph Model(bool normalized) {
  ModelBuilding model({kBatch, 6, 6, 2});
  model.Conv2D(5, {.size = {3, 3}, .padding = Padding::kSame});
  if (normalized) model.BatchNormalization();
  model.Relu().Dropout(0.4, {.block = 6 * 6 * 5, .period = 5});
  model.Pool2D(Pool2DOp::Kind::kMax, {.size = {2, 2}, .strides = {2, 2}});
  return model.Flatten().Dropout(0.3).Dense(6).Relu().Dense(4).Build();
}

ModelRunner::Options OptionsOf(Graph model, int64_t micro_batch_size = 0) {
  return {.model = std::move(model),
          .loss = kSparse,
          .metrics = *MakeMetrics({"sparse_categorical_accuracy"}, {"sparse_categorical_accuracy"}),
          .weighted = true,
          .class_weights = {{2, 0.25}},
          .micro_batch_size = micro_batch_size,
          .seed = 5};
}

bool SameBits(const std::vector<float>& one, const std::vector<float>& other) {
  return one.size() == other.size() &&
         std::memcmp(one.data(), other.data(), one.size() * sizeof(float)) == 0;
}

// GPUs that can be used here, one behind the other.
int CountGpus() {
  const cuda::DeviceSurvey survey = cuda::SurveyDevices();
  int count = 0;
  while (cuda::FindDevice(survey, count).ok()) ++count;
  return count;
}

// On every backend.
class MirroredRunnerTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() != "cuda") return;
    devices_ = CountGpus();
    if (devices_ < 2) GTEST_SKIP() << "No two GPUs here, but " << devices_;
  }

  static absl::StatusOr<std::unique_ptr<Backend>> CreateDevice(int index) {
    if (GetParam() == "cuda") return CreateBackend(absl::StrCat("cuda:", index));
    return CreateSuiteBackend(GetParam());
  }
  static std::unique_ptr<GraphRunner> MakeOne(const ModelRunner::Options& options) {
    auto backend = CreateDevice(0);
    EXPECT_TRUE(backend.ok()) << backend.status();
    auto runner = GraphRunner::Create(options, *std::move(backend));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }
  static std::unique_ptr<MirroredRunner> MakeMirrored(const ModelRunner::Options& options,
                                                      int replicas) {
    std::vector<MirroredRunner::ReplicaDevice> devices;
    for (int i = 0; i < replicas; ++i)
      devices.push_back({.name = GetParam(), .create = [i] { return CreateDevice(i); }});
    auto runner = MirroredRunner::Create(options, devices);
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }
  std::vector<float> Parameters(const ModelRunner& runner) {
    return NonNegativeParameters(random_, runner);
  }

  int devices_ = 3;  // that there are
  const std::thread::id thread_ = std::this_thread::get_id();
  std::mt19937 random_{3};
};

TEST_P(MirroredRunnerTest, ComputesWhatOneDeviceDoes) {
  struct Case {
    int replicas;
    int64_t examples;
    int64_t micro_batch_size;
  };
  const Graph model = Model(/*normalized=*/false);
  const auto one = MakeOne(OptionsOf(model));
  const std::vector<float> parameters = Parameters(*one);
  for (const Case& each :
       {Case{2, 6, 0}, Case{2, 5, 0}, Case{3, 7, 0}, Case{3, 1, 0}, Case{3, 2, 0}, Case{2, 7, 2}}) {
    if (each.replicas > devices_) continue;
    SCOPED_TRACE(absl::StrCat(each.examples, " examples on ", each.replicas, ", at once ",
                              each.micro_batch_size));
    const RandomBatch data(random_, model, *kSparse, each.examples);
    const std::vector<float> weights = RandomFloats(random_, each.examples);
    Batch batch = data.batch();
    batch.weights = weights;
    std::vector<float> expected(parameters.size()), gradients(parameters.size());
    const auto wanted = one->Train(batch, 4, parameters, expected, nullptr);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    const auto mirrored = MakeMirrored(OptionsOf(model, each.micro_batch_size), each.replicas);
    const auto trained = mirrored->Train(batch, 4, parameters, gradients, nullptr);
    ASSERT_TRUE(trained.ok()) << trained.status();
    ExpectEqual(*trained, *wanted);
    ExpectNear(gradients, expected, 1e-5, 1e-6, "gradients");
    const auto evaluated = mirrored->Evaluate(batch, parameters);
    ASSERT_TRUE(evaluated.ok()) << evaluated.status();
    ExpectEqual(*evaluated, *one->Evaluate(batch, parameters));
    // In training mode: the same dropped elements.
    for (const bool training : {false, true}) {
      const auto predicted = mirrored->Predict(batch, parameters, training);
      ASSERT_TRUE(predicted.ok()) << predicted.status();
      ExpectNear(*predicted, *one->Predict(batch, parameters, training), 1e-5, 1e-6, "prediction");
    }
  }
}

// Statistics of normalizations are those of a part; gaps between the variables are left alone.
TEST_P(MirroredRunnerTest, EqualsMicroBatchesOfTheSamePartsToTheLastBit) {
  struct Case {
    int replicas;
    int64_t examples;
    int64_t largest_part;
  };
  const Graph model = Model(/*normalized=*/true);
  for (const Case& each : {Case{2, 6, 3}, Case{2, 5, 3}, Case{3, 8, 3}, Case{3, 2, 1}}) {
    if (each.replicas > devices_) continue;
    SCOPED_TRACE(absl::StrCat(each.examples, " examples on ", each.replicas));
    const auto parts = MakeOne(OptionsOf(model, each.largest_part));
    const auto mirrored = MakeMirrored(OptionsOf(model), each.replicas);
    const RandomBatch data(random_, model, *kSparse, each.examples);
    const std::vector<float> parameters = Parameters(*parts);
    std::vector<float> expected(parameters.size(), 7), gradients(parameters.size(), 7);
    const auto wanted = parts->Train(data.batch(), 4, parameters, expected, nullptr);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    for (int run = 0; run < 3; ++run) {
      std::fill(gradients.begin(), gradients.end(), 7.0f);
      const auto trained = mirrored->Train(data.batch(), 4, parameters, gradients, nullptr);
      ASSERT_TRUE(trained.ok()) << trained.status();
      EXPECT_EQ(trained->loss_sum, wanted->loss_sum);
      EXPECT_TRUE(SameBits(gradients, expected)) << "run " << run;
    }
  }
}

// What is done may be sent off and overwritten: it is complete, and no replica reads it any more.
TEST_P(MirroredRunnerTest, AVariableIsDoneOnceAndOnTheCallersThread) {
  const Graph model = Model(/*normalized=*/true);
  const auto runner = MakeMirrored(OptionsOf(model), std::min(3, devices_));
  const RandomBatch data(random_, model, *kSparse, 7);
  const std::vector<float> original = Parameters(*runner);
  std::vector<float> expected(original.size(), kNan);
  ASSERT_TRUE(runner->Train(data.batch(), 4, original, expected, nullptr).ok());
  for (int run = 0; run < 10; ++run) {
    std::vector<float> parameters = original, gradients(original.size(), kNan);
    std::map<int, int> calls;
    const auto on_done = [&](int variable) {
      EXPECT_EQ(std::this_thread::get_id(), thread_);
      ++calls[variable];
      const auto& extent = runner->layout().variables[variable];
      for (int64_t i = extent.offset; i < extent.offset + extent.size; ++i) {
        EXPECT_EQ(gradients[i], expected[i]);
        gradients[i] = parameters[i] = kNan;
      }
    };
    ASSERT_TRUE(runner->Train(data.batch(), 4, parameters, gradients, on_done).ok());
    for (size_t v = 0; v < runner->layout().variables.size(); ++v) EXPECT_EQ(calls[v], 1) << v;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, MirroredRunnerTest, ::testing::ValuesIn(SuiteBackends()),
                         [](const auto& info) { return info.param; });

// One decision for all replicas, whoever finds out.
class MirroredLossScaleTest : public MirroredRunnerTest {
 protected:
  void SetUp() override {
    MirroredRunnerTest::SetUp();
    if (!IsSkipped()) parameters_ = Parameters(*MakeOne(OptionsOf(MixedModel())));
  }

  static Graph MixedModel() {
    ModelBuilding building({kBatch, 8});
    building.ComputeIn(ComputeDtype::kFloat16).Dense(16).Relu();
    return building.ComputeIn(ComputeDtype::kFloat32).Dense(4).Build();
  }
  // So many of the six examples, of which those from `begin` to before `end` weigh so much that
  // their gradients are large.
  BatchResult Train(ModelRunner& runner, size_t begin, size_t end, int64_t first,
                    int64_t examples) {
    std::vector<float> weights(6, 1);
    std::fill(weights.begin() + begin, weights.begin() + end, weight_);
    Batch batch = data_.batch();
    batch.weights = weights;
    std::vector<int> done;
    std::vector<float> gradients(parameters_.size());
    const auto result = runner.Train(PartOf(batch, first, examples), 1, parameters_, gradients,
                                     [&](int v) { done.push_back(v); });
    EXPECT_TRUE(result.ok()) << result.status();
    const BatchResult trained = result.value_or(BatchResult());
    EXPECT_EQ(done.size(), trained.overflowed ? 0u : 4u);
    EXPECT_EQ(trained.examples, examples);
    return trained;
  }

  float weight_ = 1e6;
  const RandomBatch data_{random_, MixedModel(), *kSparse, 6};
  std::vector<float> parameters_;
};

TEST_P(MirroredLossScaleTest, APartThatOverflowsDropsTheGradientOfAll) {
  struct Case {
    size_t begin, end;  // of those that weigh much
    int64_t examples;
    double scale;
    bool overflowed;
  };
  for (const int64_t micro_batch_size : {0, 2}) {
    const auto runner = MakeMirrored(OptionsOf(MixedModel(), micro_batch_size), 2);
    EXPECT_TRUE(runner->scales_loss());
    // The last part, the first one, of that the first micro batch alone, the only part.
    for (const Case& each :
         {Case{0, 0, 6, 32768, false}, Case{3, 6, 6, 32768, true}, Case{0, 0, 6, 16384, false},
          Case{0, 3, 6, 16384, true}, Case{0, 1, 6, 8192, true}, Case{0, 1, 1, 4096, true},
          Case{0, 0, 6, 2048, false}}) {
      SCOPED_TRACE(absl::StrCat(each.scale, ", at once ", micro_batch_size));
      const BatchResult result = Train(*runner, each.begin, each.end, 0, each.examples);
      EXPECT_EQ(result.loss_scale, each.scale);
      EXPECT_EQ(result.overflowed, each.overflowed);
    }
    runner->ForgetLossScale();
    EXPECT_EQ(Train(*runner, 0, 0, 0, 6).loss_scale, 32768);
  }
}

// Of one example the first replica computes all; the other has the same scale then.
TEST_P(MirroredLossScaleTest, AReplicaWithoutAPartFollows) {
  weight_ = 200;
  const auto alone = MakeOne(OptionsOf(MixedModel()));
  BatchResult finite;
  for (int i = 0; i < 20; ++i) {
    finite = Train(*alone, 3, 6, 3, 3);
    if (!finite.overflowed) break;
  }
  ASSERT_LT(finite.loss_scale, 32768) << "the test provokes no overflow";
  ASSERT_GT(finite.loss_scale, 1);
  const auto runner = MakeMirrored(OptionsOf(MixedModel()), 2);
  weight_ = 1e6;
  for (double scale = 32768; scale > finite.loss_scale; scale /= 2)
    EXPECT_TRUE(Train(*runner, 0, 1, 0, 1).overflowed);
  weight_ = 200;
  const BatchResult result = Train(*runner, 3, 6, 0, 6);
  EXPECT_EQ(result.loss_scale, finite.loss_scale);
  EXPECT_FALSE(result.overflowed);
}

INSTANTIATE_TEST_SUITE_P(Backends, MirroredLossScaleTest,
                         ::testing::ValuesIn(ReducedPrecisionBackends()),
                         [](const auto& info) { return info.param; });

// One whose programs fail at their end.
class FailingBackend : public FakeDeviceBackend {
 public:
  using FakeDeviceBackend::FakeDeviceBackend;

 protected:
  absl::Status AddSteps(ProgramBuilder& builder) const override {
    SHOAL_RETURN_IF_ERROR(FakeDeviceBackend::AddSteps(builder));
    builder.AddStep(std::make_unique<FailingKernel>(), {});
    return absl::OkStatus();
  }
};

// On two fake devices.
class MirroredDevicesTest : public ::testing::Test {
 protected:
  // `fails`: whether a device's programs do.
  std::unique_ptr<MirroredRunner> Make(std::vector<bool> fails = {false, false},
                                       int64_t memory_bytes = int64_t{1} << 30) {
    std::vector<MirroredRunner::ReplicaDevice> devices;
    devices_.resize(fails.size());
    for (size_t i = 0; i < fails.size(); ++i) {
      const auto create = [this, i, fails = fails[i], memory_bytes] {
        auto device = std::make_unique<FakeDevice>(/*seed=*/i);
        device->SetMemory(memory_bytes);
        devices_[i] = device.get();
        std::unique_ptr<Backend> backend;
        if (fails) {
          backend = std::make_unique<FailingBackend>(std::move(device), 64);
        } else {
          backend = std::make_unique<FakeDeviceBackend>(std::move(device), 64);
        }
        return absl::StatusOr<std::unique_ptr<Backend>>(std::move(backend));
      };
      devices.push_back({.name = absl::StrCat("fake:", i), .create = create});
    }
    return *MirroredRunner::Create(OptionsOf(model_), devices);
  }
  absl::Status Train(MirroredRunner& runner, int64_t examples) {
    const RandomBatch data(random_, model_, *kSparse, examples);
    PageAlignedFloats parameters(runner.layout().size, 0.1f), gradients(parameters.size());
    const auto pinned = runner.Pin(parameters), pinned_gradients = runner.Pin(gradients);
    EXPECT_TRUE(pinned.ok() && pinned_gradients.ok());
    return runner.Train(data.batch(), 1, parameters, gradients, nullptr).status();
  }

  const Graph model_ = Model(/*normalized=*/true);
  std::vector<FakeDevice*> devices_;
  std::mt19937 random_{3};
};

TEST_F(MirroredDevicesTest, AnErrorOfOneNamesItAndComesWhenAllHaveEnded) {
  for (const std::vector<bool>& fails :
       {std::vector<bool>{false, true, false}, {false, true, true}}) {
    const auto runner = Make(fails);
    EXPECT_EQ(Train(*runner, 7).ToString(),
              "INTERNAL: replica 1 on fake:1: the kernel of this test fails");
    for (const FakeDevice* device : devices_) EXPECT_TRUE(device->idle());
    // Of one example the first computes all.
    EXPECT_TRUE(Train(*runner, 1).ok());
    EXPECT_FALSE(Train(*runner, 7).ok());
  }
}

TEST_F(MirroredDevicesTest, AnErrorNamesPlacesOfTheWholeBatch) {
  const auto runner = Make();
  const RandomBatch data(random_, model_, *kSparse, 6);
  std::vector<float> parameters(runner->layout().size), gradients(parameters.size());
  Batch batch = data.batch();
  std::vector<float> target(batch.target.begin(), batch.target.end());
  target[5] = 4;
  batch.target = target;
  EXPECT_THAT(runner->Train(batch, 1, parameters, gradients, nullptr).status().ToString(),
              AllOf(HasSubstr("INVALID_ARGUMENT: example 5 "), HasSubstr("label 4")));
  batch = data.batch();
  batch.inputs[0] = batch.inputs[0].Part(2, batch.inputs[0].size() - 2);
  EXPECT_THAT(runner->Evaluate(batch, parameters).status().ToString(),
              AllOf(HasSubstr("6 examples"), HasSubstr("430"), HasSubstr("432")));
}

// Neither parameters and gradients nor the buffers that are added up.
TEST_F(MirroredDevicesTest, CopiesHoldNoReplicaUp) {
  const auto runner = Make();
  ASSERT_TRUE(Train(*runner, 6).ok());
  const auto model = static_cast<int64_t>(runner->layout().size * sizeof(float));
  EXPECT_EQ(devices_[1]->pinned_bytes() - devices_[0]->pinned_bytes(), model);
  for (FakeDevice* device : devices_)
    EXPECT_EQ(std::count(device->log().begin(), device->log().end(), "host: held up"), 0);
}

// Each its part of it: before that is computed the context and the weights alone are copied.
TEST_F(MirroredDevicesTest, EachIsGivenItsPartOfTheNextBatchWhileItComputes) {
  const auto runner = Make();
  const RandomBatch one(random_, model_, *kSparse, 6), other(random_, model_, *kSparse, 6);
  const std::vector<float> parameters(runner->layout().size, 0.1f);
  std::vector<float> expected(parameters.size()), gradients(parameters.size());
  Batch first = one.batch(), second = other.batch();
  ASSERT_TRUE(runner->Train(second, 2, parameters, expected, nullptr).ok());
  first.id = 1;
  second.id = 2;
  first.next = &second;
  ASSERT_TRUE(runner->Train(first, 1, parameters, gradients, nullptr).ok());
  for (FakeDevice* device : devices_) device->log().clear();
  ASSERT_TRUE(runner->Train(second, 2, parameters, gradients, nullptr).ok());
  EXPECT_TRUE(SameBits(gradients, expected));
  for (FakeDevice* device : devices_) {
    const auto copy = std::find_if(device->log().begin(), device->log().end(),
                                   [](const auto& line) { return line.starts_with("in: copy "); });
    ASSERT_NE(copy, device->log().end());
    EXPECT_EQ(*copy, "in: copy 268");  // 256 and the weights of 3 examples
  }
}

TEST_F(MirroredDevicesTest, EachAwaitsTheParametersThatItReads) {
  const auto runner = Make();
  const RandomBatch data(random_, model_, *kSparse, 6);
  const std::vector<float> values(runner->layout().size, 0.1f);
  std::vector<float> expected(values.size()), gradients(values.size());
  ASSERT_TRUE(runner->Train(data.batch(), 1, values, expected, nullptr).ok());
  LateParameters late(runner->layout(), values);
  ASSERT_TRUE(runner->Train(data.batch(), 1, late.buffer(), gradients, nullptr, &late).ok());
  EXPECT_TRUE(SameBits(gradients, expected));
  LateParameters never(runner->layout(), values);
  never.on_await = [](int) { return absl::CancelledError("they do not come"); };
  EXPECT_EQ(
      runner->Train(data.batch(), 1, never.buffer(), gradients, nullptr, &never).status().code(),
      absl::StatusCode::kCancelled);
}

TEST_F(MirroredDevicesTest, ADeviceThatIsTooSmallIsNamedWithItsPart) {
  const absl::Status status = Make({false, false}, 20 << 10)->MemoryOfBatch(64).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("replica 0 on fake:0: "), HasSubstr("32 examples"),
                    HasSubstr("\"micro_batch_size\" to ")));
}

std::unique_ptr<ModelRunner> MakeReference(const std::string& devices, int64_t micro_batch_size,
                                           Graph model) {
  ModelRunner::Options options = OptionsOf(std::move(model), micro_batch_size);
  options.backend = devices;
  auto runner = CreateModelRunner(std::move(options));
  EXPECT_TRUE(runner.ok()) << runner.status();
  return *std::move(runner);
}

TEST(MirroredMemoryTest, IsThatOfAllReplicas) {
  const Graph model = Model(/*normalized=*/true);
  const auto mirrored = MakeReference("reference,reference,reference", 0, model);
  const auto one = MakeReference("reference", 0, model);
  const auto all = mirrored->MemoryOfBatch(8);
  ASSERT_TRUE(all.ok()) << all.status();
  const auto gradients = static_cast<int64_t>(one->layout().size * sizeof(float));
  EXPECT_EQ(all->data, one->MemoryOfBatch(8)->data);
  EXPECT_EQ(all->activations, 2 * one->MemoryOfBatch(3)->activations +
                                  one->MemoryOfBatch(2)->activations + 2 * gradients);
  EXPECT_EQ(mirrored->MemoryOfBatch(1)->activations, one->MemoryOfBatch(1)->activations);
  EXPECT_TRUE(one->computes_on_caller());
  EXPECT_FALSE(mirrored->computes_on_caller());
}

TEST(MirroredCreationTest, ErrorsAreByName) {
  ModelRunner::Options options = OptionsOf(Model(false));
  options.backend = "reference,cpu";
  EXPECT_THAT(CreateModelRunner(options).status().ToString(),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("\"reference,cpu\"")));
  const auto fails = [] {
    return absl::StatusOr<std::unique_ptr<Backend>>(absl::NotFoundError("it is not there"));
  };
  const auto works = [] {
    return absl::StatusOr<std::unique_ptr<Backend>>(CreateReferenceBackend());
  };
  EXPECT_EQ(MirroredRunner::Create(options, {{"a", works}, {"b", fails}}).status().ToString(),
            "NOT_FOUND: replica 1 on b: it is not there");
}

// NCCL, where this machine has it; else the host adds up again.
TEST(MirroredGpusTest, AddUpWhatTheHostDoes) {
  const int gpus = CountGpus();
  if (gpus < 2) GTEST_SKIP() << "No two GPUs here, but " << gpus;
  ModelRunner::Options options = OptionsOf(Model(/*normalized=*/true));
  options.backend = "cuda:0,cuda:1";
  const auto host = CreateModelRunner(options);
  options.numerics.nondeterministic = true;
  const auto gpu = CreateModelRunner(options);
  ASSERT_TRUE(host.ok() && gpu.ok()) << host.status() << gpu.status();
  std::mt19937 random(3);
  const RandomBatch data(random, options.model, *kSparse, 7);
  std::vector<float> parameters((*host)->layout().size, 0.1f), expected(parameters.size());
  ASSERT_TRUE((*host)->Train(data.batch(), 1, parameters, expected, nullptr).ok());
  for (int run = 0; run < 4; ++run) {
    std::vector<float> gradients(parameters.size());
    const auto trained = (*gpu)->Train(data.batch(), 1, parameters, gradients, nullptr);
    ASSERT_TRUE(trained.ok()) << trained.status();
    ExpectNear(gradients, expected, 1e-4, 1e-5, "gradients");
  }
}

// The first replica goes on when the test says that a variable was done.
TEST(MirroredProgressTest, VariablesAreDoneWhileReplicasCompute) {
  Mutex mutex;
  CondVar changed;
  int done = 0, works = 0;
  bool in_time = true;
  ModelRunner::Options options = OptionsOf(Model(/*normalized=*/true));
  int works_of_step = 0;
  options.on_work_timed = [&](const std::string&, std::chrono::nanoseconds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    MutexLock lock(&mutex);
    if (++works != works_of_step) return;
    while (done == 0 && in_time) in_time = changed.WaitUntil(&mutex, deadline);
  };
  const auto create = [] {
    return absl::StatusOr<std::unique_ptr<Backend>>(CreateReferenceBackend());
  };
  const auto runner = *MirroredRunner::Create(options, {{"a", create}, {"b", create}});
  std::mt19937 random(3);
  const RandomBatch data(random, options.model, *kSparse, 6);
  std::vector<float> parameters(runner->layout().size, 0.1f), gradients(parameters.size());
  ASSERT_TRUE(runner->Train(data.batch(), 1, parameters, gradients, nullptr).ok());
  works_of_step = std::exchange(works, 0);
  ASSERT_GT(works_of_step, 10);
  const auto on_done = [&](int) {
    MutexLock lock(&mutex);
    ++done;
    changed.NotifyAll();
  };
  ASSERT_TRUE(runner->Train(data.batch(), 1, parameters, gradients, on_done).ok());
  EXPECT_TRUE(in_time) << "no variable was done before the step's end";
}

}  // namespace
}  // namespace shoal
