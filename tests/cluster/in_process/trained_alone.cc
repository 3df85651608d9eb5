#include "tests/cluster/in_process/trained_alone.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <span>

#include "common/checkpoint/safetensors.h"
#include "common/compression/chunk_payload.h"
#include "common/job/job_shard_map.h"
#include "common/loss/keras_loss.h"
#include "common/model/initializer.h"
#include "common/model/keras_model.h"
#include "common/model/moving_average.h"
#include "common/optimizer/optimizer.h"
#include "worker/compute/runner/model_runner.h"
#include "worker/input/batches/batch_source.h"
#include "worker/job/job_data.h"

namespace shoal {
namespace {

// What becomes of values of the whole model that travel as a codec writes them; null: as float32.
class Journey {
 public:
  Journey(const std::string& codec, Direction direction, const ShardMap& shard_map,
          const ModelLayout& layout)
      : codec_(*MakeCodec(codec, direction)), shard_map_(shard_map), layout_(layout) {
    if (codec_ != nullptr && codec_->leaves_residual()) residual_.resize(layout.size);
  }

  void Take(std::vector<float>* values) {
    for (int ps = 0; ps < shard_map_.ps_count(); ++ps) {
      for (const Chunk& chunk : shard_map_.ps(ps).chunks) {
        if (CodecOf(codec_.get(), chunk) == nullptr) continue;
        for (const ChunkPiece& piece : chunk.pieces) TakePiece(piece, values);
      }
    }
  }

 private:
  void TakePiece(const ChunkPiece& piece, std::vector<float>* values) {
    const size_t begin = layout_.variables[piece.variable].offset + piece.variable_offset;
    const std::span<float> sent = std::span(*values).subspan(begin, piece.size);
    if (!residual_.empty()) {
      for (size_t i = 0; i < sent.size(); ++i)
        residual_[begin + i] = sent[i] += residual_[begin + i];
    }
    std::string bytes(codec_->EncodedBytes(sent.size()), '\0');
    codec_->Encode(sent, bytes.data());
    EXPECT_TRUE(codec_->Decode(bytes, sent).ok());
    if (!residual_.empty()) {
      for (size_t i = 0; i < sent.size(); ++i) residual_[begin + i] -= sent[i];
    }
  }

  const std::shared_ptr<const Codec> codec_;
  const ShardMap& shard_map_;
  const ModelLayout& layout_;
  std::vector<float> residual_;
};

}  // namespace

Variables ReadModel(const std::string& run_dir) {
  Variables variables;
  absl::StatusOr<std::unique_ptr<SafetensorsFile>> file =
      SafetensorsFile::Open(run_dir + "/model/model.safetensors");
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return variables;
  for (const TensorEntry& entry : (*file)->tensors())
    variables[entry.name] = *(*file)->ReadFloats(entry);
  return variables;
}

Variables TrainAlone(const Job& job, uint64_t steps, int ps, const CreateRunner& create_runner) {
  absl::StatusOr<KerasModel> model = ParseKerasModel(job.model_json);
  EXPECT_TRUE(model.ok()) << model.status();
  const std::vector<Variable>& variables = model->graph.variables();
  auto runner = *create_runner({.model = model->graph,
                                .loss = *MakeLoss(job.loss),
                                .metrics = *MakeMetrics({"sparse_categorical_accuracy"}),
                                .backend = "reference",
                                .seed = job.seed});
  const ModelLayout& layout = runner->layout();
  std::vector<float> parameters(layout.size), gradients(layout.size);
  const std::unique_ptr<const Optimizer> optimizer = *MakeOptimizer(job.optimizer);
  std::vector<std::vector<float>> slots;
  for (size_t i = 0; i < optimizer->slot_names().size(); ++i) {
    slots.emplace_back(layout.size, optimizer->initial_slot_value(static_cast<int>(i)));
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    InitializeRows(
        variables[i].initializer, variables[i].name, variables[i].shape, job.seed, 0,
        variables[i].shape[0],
        std::span(parameters).subspan(layout.variables[i].offset, layout.variables[i].size));
  }
  const ShardMap shard_map = *ShardMapOf(job, variables, ps);
  Journey up(job.compression.push, Direction::kPush, shard_map, layout);
  Journey down(job.compression.pull, Direction::kPull, shard_map, layout);
  std::shared_ptr<const Dataset> dataset = *OpenDataset(job.training, InputsOf(model->graph));
  BatchSource batches({.dataset = dataset,
                       .plan = StepPlan(dataset->size(), job.batch_size, job.epochs, job.steps),
                       .seed = job.seed});
  for (uint64_t step = 0; step < steps; ++step) {
    std::unique_ptr<LoadedBatch> batch = *batches.Take(step);
    std::vector<float> seen = parameters;
    down.Take(&seen);
    const auto trained = runner->Train({.examples = static_cast<int64_t>(batch->examples),
                                        .inputs = {batch->inputs[0]},
                                        .target = batch->targets},
                                       step, seen, gradients, nullptr);
    EXPECT_TRUE(trained.ok()) << trained.status();
    if (trained->overflowed) continue;
    std::vector<std::span<float>> parts;
    for (size_t i = 0; i < variables.size(); ++i) {
      const ModelLayout::Extent& extent = layout.variables[i];
      if (variables[i].rule == UpdateRule::kOptimizer)
        parts.push_back(std::span(gradients).subspan(extent.offset, extent.size));
    }
    optimizer->clipping().Clip(parts);
    up.Take(&gradients);
    for (size_t i = 0; i < variables.size(); ++i) {
      const ModelLayout::Extent& extent = layout.variables[i];
      const std::span<float> values = std::span(parameters).subspan(extent.offset, extent.size);
      const std::span<const float> pushed =
          std::span(gradients).subspan(extent.offset, extent.size);
      if (variables[i].rule == UpdateRule::kMovingAverage) {
        UpdateMovingAverage(variables[i].momentum, pushed, values, values);
        continue;
      }
      std::vector<float*> slot_pointers;
      for (std::vector<float>& slot : slots) slot_pointers.push_back(slot.data() + extent.offset);
      const bool decays = !optimizer->decay_exclusions().Excludes(variables[i].name);
      optimizer->Prepare(step + 1, {.decays = decays})
          ->Apply(pushed, values, values, slot_pointers);
    }
  }
  // What is saved in the end.
  for (size_t i = 0; i < slots.size(); ++i) {
    if (optimizer->slot_names()[i] == optimizer->average_slot()) parameters = slots[i];
  }
  Variables result;
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto begin = parameters.begin() + layout.variables[i].offset;
    result[variables[i].name] = {begin, begin + layout.variables[i].size};
  }
  return result;
}

void ExpectSameBits(const Variables& got, const Variables& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, values] : want) {
    ASSERT_TRUE(got.contains(name)) << name;
    ASSERT_EQ(got.at(name).size(), values.size()) << name;
    EXPECT_EQ(std::memcmp(got.at(name).data(), values.data(), values.size() * sizeof(float)), 0)
        << name;
  }
}

void ExpectClose(const Variables& got, const Variables& want) {
  for (const auto& [name, values] : want) {
    ASSERT_EQ(got.at(name).size(), values.size()) << name;
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(got.at(name)[i], values[i], 2e-4 * (1 + std::abs(values[i]))) << name;
  }
}

}  // namespace shoal
