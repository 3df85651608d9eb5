#include "common/sharding/shard_map.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/crc32c.h"

namespace shoal {
namespace {

constexpr int64_t kAlignment = 16;  // floats: 64 bytes

int64_t RowCount(const Shape& shape) { return shape.empty() ? 1 : shape[0]; }

int64_t RowSize(const Shape& shape) {
  const int64_t rows = RowCount(shape);
  return rows == 0 ? 0 : ElementCount(shape) / rows;
}

int64_t RoundUp(int64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

const char* RuleName(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::kOptimizer:
      return "optimizer";
    case UpdateRule::kMovingAverage:
      return "moving average";
    case UpdateRule::kFrozen:
      return "frozen";
  }
  return "";
}

// Splits a variable's rows into as many parts as ps_count and the min shard size allow.
std::vector<Shard> Split(int index, const Shape& shape, int ps_count, int64_t min_shard_bytes) {
  const int64_t rows = RowCount(shape);
  const int64_t row_bytes = RowSize(shape) * static_cast<int64_t>(sizeof(float));
  if (rows * row_bytes == 0) return {};
  const int64_t min_rows = std::max<int64_t>(
      1, min_shard_bytes / row_bytes + (min_shard_bytes % row_bytes != 0 ? 1 : 0));
  const int64_t count = std::clamp<int64_t>(rows / min_rows, 1, ps_count);
  std::vector<Shard> parts;
  int64_t row = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t part_rows = rows / count + (i < rows % count ? 1 : 0);
    parts.push_back({.variable = index, .row_begin = row, .row_end = row + part_rows});
    row += part_rows;
  }
  return parts;
}

// Places the shards of one ps in its slab and cuts the slab into chunks.
class SlabFiller {
 public:
  // With `whole_variables`, no chunk ends within a variable that the optimizer updates.
  SlabFiller(const std::vector<Variable>& variables, int64_t chunk_size, bool whole_variables,
             PsShards* ps)
      : variables_(variables),
        chunk_size_(chunk_size),
        whole_variables_(whole_variables),
        ps_(ps) {}

  void Add(Shard& shard) {
    const Variable& variable = variables_[shard.variable];
    const int64_t row_size = RowSize(variable.shape);
    int64_t offset = shard.row_begin * row_size;
    const int64_t end = shard.row_end * row_size;
    if (!open_ || ps_->chunks.back().rule != variable.rule ||
        ps_->chunks.back().size + end - offset > chunk_size_) {
      BeginChunk(variable.rule);
    }
    shard.slab_offset = ps_->chunks.back().slab_offset + ps_->chunks.back().size;
    const bool whole = whole_variables_ && variable.rule == UpdateRule::kOptimizer;
    while (offset < end) {
      if (ps_->chunks.back().size == chunk_size_) BeginChunk(variable.rule);
      Chunk& chunk = ps_->chunks.back();
      const int64_t size = whole ? end - offset : std::min(end - offset, chunk_size_ - chunk.size);
      chunk.pieces.push_back({shard.variable, offset, chunk.size, size});
      chunk.size += size;
      offset += size;
    }
    ps_->slab_size = ps_->chunks.back().slab_offset + RoundUp(ps_->chunks.back().size);
  }

 private:
  void BeginChunk(UpdateRule rule) {
    Chunk chunk;
    if (open_) {
      chunk.slab_offset = ps_->chunks.back().slab_offset + RoundUp(ps_->chunks.back().size);
    }
    chunk.rule = rule;
    ps_->chunks.push_back(std::move(chunk));
    open_ = true;
  }

  const std::vector<Variable>& variables_;
  const int64_t chunk_size_;
  const bool whole_variables_;
  PsShards* const ps_;
  bool open_ = false;
};

}  // namespace

ShardMap::ShardMap(const std::vector<Variable>& variables, int ps_count,
                   const ShardingOptions& options)
    : variables_(variables),
      chunk_size_(std::max(kAlignment, options.chunk_bytes / static_cast<int64_t>(sizeof(float)) /
                                           kAlignment * kAlignment)),
      whole_variables_(options.whole_variables),
      ps_(std::max(ps_count, 1)) {
  std::vector<Shard> parts;
  for (size_t i = 0; i < variables.size(); ++i) {
    const bool whole = whole_variables_ && variables[i].rule == UpdateRule::kOptimizer;
    const std::vector<Shard> split = Split(static_cast<int>(i), variables[i].shape,
                                           whole ? 1 : this->ps_count(), options.min_shard_bytes);
    parts.insert(parts.end(), split.begin(), split.end());
  }
  const auto part_size = [&](const Shard& part) {
    return (part.row_end - part.row_begin) * RowSize(variables[part.variable].shape);
  };
  std::stable_sort(parts.begin(), parts.end(),
                   [&](const Shard& a, const Shard& b) { return part_size(a) > part_size(b); });

  std::vector<int64_t> load(ps_.size(), 0);
  for (const Shard& part : parts) {
    int best = -1;
    for (int p = 0; p < this->ps_count(); ++p) {
      const bool has_one =
          std::any_of(ps_[p].shards.begin(), ps_[p].shards.end(),
                      [&](const Shard& other) { return other.variable == part.variable; });
      if (!has_one && (best < 0 || load[p] < load[best])) best = p;
    }
    load[best] += part_size(part);
    ps_[best].shards.push_back(part);
  }

  for (PsShards& ps : ps_) {
    const auto order = [&](const Shard& shard) {
      return std::pair(variables[shard.variable].rule, shard.variable);
    };
    std::sort(ps.shards.begin(), ps.shards.end(),
              [&](const Shard& a, const Shard& b) { return order(a) < order(b); });
    SlabFiller filler(variables, chunk_size_, whole_variables_, &ps);
    for (Shard& shard : ps.shards) filler.Add(shard);
  }
}

std::string ShardMap::ToText() const {
  nlohmann::ordered_json text;
  text["chunk_bytes"] = chunk_size_ * sizeof(float);
  if (whole_variables_) text["whole_variables"] = true;
  text["ps"] = nlohmann::ordered_json::array();
  for (const PsShards& ps : ps_) {
    nlohmann::ordered_json shards = nlohmann::ordered_json::array();
    for (const Shard& shard : ps.shards) {
      const Variable& variable = variables_[shard.variable];
      shards.push_back({{"variable", variable.name},
                        {"shape", variable.shape},
                        {"update", RuleName(variable.rule)},
                        {"rows", {shard.row_begin, shard.row_end}}});
    }
    text["ps"].push_back({{"shards", std::move(shards)}, {"chunks", ps.chunks.size()}});
  }
  return text.dump();
}

uint32_t ShardMap::Fingerprint() const {
  const std::string text = ToText();
  return Crc32c(text);
}

}  // namespace shoal
