#include "coordinator/cuts/cut_fetch.h"

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

constexpr size_t kMaxPending = 2;  // parts that are requested or being written

}  // namespace

// Used off the loop by one task at a time; used on the loop only while no task runs.
struct CutFetch::Output {
  Output(const Options& options) : writer(options.layout, options.directory, options.files) {}
  CheckpointWriter writer;
  absl::Status status;
};

CutFetch::CutFetch(Options options)
    : options_(std::move(options)),
      fetch_(PartsOf(options_), kMaxPending, [this](const Part& part) { Ask(part); }),
      output_(std::make_shared<Output>(options_)) {
  fetch_.RequestMore();
  if (fetch_.done()) Finish();
}

std::vector<CutFetch::Part> CutFetch::PartsOf(const Options& options) {
  std::vector<Part> parts;
  const std::vector<Chunk>& chunks = options.shard_map->ps(options.ps).chunks;
  for (int chunk = 0; chunk < static_cast<int>(chunks.size()); ++chunk) {
    const int slots = chunks[chunk].has_slots() ? static_cast<int>(options.slots.size()) : 0;
    for (int part = 0; part <= slots; ++part) parts.emplace_back(chunk, part);
  }
  return parts;
}

void CutFetch::Ask(const Part& part) {
  proto::ControlRequest request;
  proto::ReadCut* read = request.mutable_read_cut();
  read->set_cut_step(options_.cut_step);
  read->set_chunk(part.first);
  read->set_part(part.second);
  options_.send(request);
}

void CutFetch::OnRows(const proto::CutRows& rows) {
  if (ended_) return;
  const Part* const part =
      fetch_.Receive([&rows](const Part& each) { return each == Part(rows.chunk(), rows.part()); });
  if (part == nullptr) return;
  const Chunk& chunk = options_.shard_map->ps(options_.ps).chunks[rows.chunk()];
  if (rows.values().size() != chunk.size * sizeof(float)) {
    return End(absl::DataLossError(absl::StrCat(
        "it sent ", rows.values().size(), " bytes of chunk ", rows.chunk(), ", which has ",
        chunk.size * sizeof(float), rows.values().empty() ? ": it has ended the cut" : "")));
  }
  Write(rows);
}

void CutFetch::Write(const proto::CutRows& rows) {
  const std::string prefix = rows.part() == 0 ? "" : options_.slots[rows.part() - 1] + "/";
  const Chunk& chunk = options_.shard_map->ps(options_.ps).chunks[rows.chunk()];
  scope_.Offload(
      Lane::kFiles,
      [output = output_, values = rows.values(), prefix, pieces = chunk.pieces,
       variables = options_.variables] {
        for (const ChunkPiece& piece : pieces) {
          if (!output->status.ok()) return;
          output->status = output->writer.Write(
              prefix + (*variables)[piece.variable].name, piece.variable_offset * sizeof(float),
              values.data() + piece.chunk_offset * sizeof(float), piece.size * sizeof(float));
        }
      },
      [this] {
        if (ended_) return;
        if (!output_->status.ok()) return End(output_->status);
        fetch_.Release();
        if (fetch_.done()) Finish();
      });
}

void CutFetch::Finish() {
  scope_.Offload(
      Lane::kFiles, [output = output_] { return output->writer.Finish(); },
      [this](absl::StatusOr<std::vector<WrittenPart>> written) {
        if (!ended_) End(std::move(written));
      });
}

void CutFetch::End(absl::StatusOr<std::vector<WrittenPart>> result) {
  ended_ = true;
  const auto done = options_.done;  // a copy: the call may destroy this
  done(std::move(result));
}

}  // namespace shoal
