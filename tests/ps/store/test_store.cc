#include "tests/ps/store/test_store.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

Variable Var(std::string name, Shape shape, UpdateRule rule = UpdateRule::kOptimizer) {
  return {.name = std::move(name),
          .shape = std::move(shape),
          .rule = rule,
          .initializer = {.kind = Initializer::Kind::kUniform, .a = -1, .b = 1}};
}

}  // namespace

std::vector<Variable> TestVariables(bool random_values) {
  std::vector<Variable> variables = {Var("dense/kernel", {31, 7}),
                                     Var("dense/bias", {7}),
                                     Var("norm/mean", {9}, UpdateRule::kFrozen),
                                     Var("scale", {}),
                                     Var("norm/average", {9}, UpdateRule::kMovingAverage),
                                     Var("output/kernel", {7, 20})};
  for (Variable& variable : variables) {
    if (variable.rule == UpdateRule::kMovingAverage) variable.momentum = kCountingMomentum;
    if (!random_values) variable.initializer = {.kind = Initializer::Kind::kConstant, .a = 3};
  }
  return variables;
}

ShardingOptions TestSharding() { return {.min_shard_bytes = 80 * 4, .chunk_bytes = 64 * 4}; }

std::string CountingSgd(double momentum) {
  return absl::StrCat(R"({"class_name": "SGD", "config": {"learning_rate": 1, "momentum": )",
                      momentum, "}}");
}

std::unique_ptr<VariableStore> MakeTestStore(const TestStoreOptions& options) {
  const std::vector<Variable> variables = TestVariables(options.random_values);
  const std::shared_ptr<const Optimizer> optimizer = options.own_optimizer != nullptr
                                                         ? options.own_optimizer
                                                         : MakeOptimizer(options.optimizer).value();
  ShardingOptions sharding = TestSharding();
  sharding.whole_variables = optimizer->takes_whole_variables();
  return std::make_unique<VariableStore>(
      VariableStore::Options{.variables = variables,
                             .shard_map = ShardMap(variables, options.ps_count, sharding),
                             .ps_index = options.ps_index,
                             .optimizer = optimizer,
                             .rate_scale = options.rate_scale,
                             .look_ahead = options.look_ahead,
                             .window_steps = options.window_steps,
                             .max_round_steps = options.max_round_steps,
                             .seed = options.seed});
}

Message GradientMessage(const std::vector<float>& values, size_t slice_bytes) {
  const auto bytes = std::make_shared<std::string>(reinterpret_cast<const char*>(values.data()),
                                                   values.size() * sizeof(float));
  if (slice_bytes == 0) slice_bytes = std::max<size_t>(1, bytes->size());
  Message message;
  for (size_t i = 0; i < bytes->size(); i += slice_bytes) {
    // Each slice on its own, so that reading beyond it is found by the sanitizers.
    const auto part = std::make_shared<std::vector<char>>(
        bytes->begin() + i, bytes->begin() + std::min(bytes->size(), i + slice_bytes));
    message.payload.push_back({part->data(), part->size(), part});
  }
  return message;
}

Message PushOf(const VariableStore& store, int chunk, std::vector<float> values) {
  const PsShards& shards = store.options().shard_map.ps(store.options().ps_index);
  if (shards.chunks[chunk].rule == UpdateRule::kMovingAverage) {
    for (float& value : values) value *= -kSample;
  }
  return GradientMessage(values);
}

std::vector<float> ToFloats(const std::vector<Slice>& payload) {
  Message message;
  message.payload = payload;
  std::vector<float> values(message.payload_bytes() / sizeof(float));
  CopyPayload(message, 0, values.data(), values.size() * sizeof(float));
  return values;
}

void CollectValues(const VariableStore& store, std::map<std::string, std::vector<float>>* tensors) {
  const VariableStore::Options& options = store.options();
  const PsShards& shards = options.shard_map.ps(options.ps_index);
  for (int k = 0; k < store.chunk_count(); ++k) {
    const std::vector<float> values = ToFloats(store.Read(k)->payload);
    for (const ChunkPiece& piece : shards.chunks[k].pieces) {
      const Variable& variable = options.variables[piece.variable];
      std::vector<float>& tensor = (*tensors)[variable.name];
      tensor.resize(ElementCount(variable.shape));
      std::copy_n(values.begin() + piece.chunk_offset, piece.size,
                  tensor.begin() + piece.variable_offset);
    }
  }
}

void CollectCut(const VariableStore& store, std::map<std::string, std::vector<float>>* tensors) {
  for (int k = 0; k < store.chunk_count(); ++k) {
    for (const CutCopies::Piece& piece : store.cut().CopyPieces(k)) {
      std::vector<float>& tensor = (*tensors)[piece.tensor];
      const size_t offset = piece.offset_bytes / sizeof(float);
      tensor.resize(std::max(tensor.size(), offset + piece.values.size()));
      std::copy(piece.values.begin(), piece.values.end(), tensor.begin() + offset);
    }
  }
}

size_t CopiesOfCut(const VariableStore& store) {
  size_t copies = 0;
  for (int k = 0; k < store.chunk_count(); ++k) copies += store.cut().copy(k) != nullptr;
  return copies;
}

int64_t SlotFloatsOfCut(const VariableStore& store) {
  int64_t floats = 0;
  for (int k = 0; k < store.chunk_count(); ++k) {
    if (const ChunkState* const copy = store.cut().copy(k))
      floats += store.chunk_size(k) * static_cast<int64_t>(copy->slots.size());
  }
  return floats;
}

int PushedChunks(const VariableStore& store) {
  const PsShards& shards = store.options().shard_map.ps(store.options().ps_index);
  return static_cast<int>(std::count_if(shards.chunks.begin(), shards.chunks.end(),
                                        [](const Chunk& chunk) { return chunk.pushed(); }));
}

}  // namespace shoal
