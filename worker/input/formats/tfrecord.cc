// TFRecord files of tf.train.Example.

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/format_bytes.h"
#include "common/base/text/printable.h"
#include "common/json/json_errors.h"
#include "worker/input/dataset/data_formats.h"
#include "worker/input/dataset/feature_shapes.h"
#include "worker/input/dataset/skipping_dataset.h"
#include "worker/input/files/file_content.h"
#include "worker/input/files/temporary_table.h"
#include "worker/input/formats/tfrecord/example_record.h"
#include "worker/input/formats/tfrecord/record_file.h"

namespace shoal {
namespace {

// The place of a record, in 64 bits: the file's number, then the offset in it.
constexpr int kOffsetBits = 48;
constexpr size_t kMaxFiles = 1 << (64 - kOffsetBits);

constexpr size_t kMaxKeys = 1000;  // in a report
constexpr size_t kMaxKinds = 100;  // of each key in a report

// The key of an input, and how to read it.
struct Part {
  std::string key;
  std::optional<PictureLoader> pictures;  // if its shape is that of a picture
};

class TfRecord : public Dataset {
 public:
  struct Content {
    std::vector<RecordFile> files;
    TemporaryTable index;  // a u64 for each record
    std::vector<Part> parts;
    std::vector<Feature> features;
    std::string label_key;
    Shape label_shape;
    bool may_skip = false;  // damaged records
  };
  explicit TfRecord(Content content) : content_(std::move(content)) {}

  uint64_t size() const override { return content_.index.size() / sizeof(uint64_t); }
  const std::vector<Feature>& features() const override { return content_.features; }
  const Shape& label_shape() const override { return content_.label_shape; }
  bool IsCostlyToRead() const override { return true; }
  DatasetMemory memory() const override { return {.temporary = ReadingMemory::kMaxBytes}; }
  uint64_t bytes_for_label() const override {
    uint64_t bytes = 0;
    for (const RecordFile& file : content_.files) bytes += file.size_bytes();
    return bytes / size();
  }
  std::string LabelSource() const override {
    const std::vector<RecordFile>& files = content_.files;
    return files.size() == 1 ? files[0].path()
                             : absl::StrCat(files[0].path(), " and ", files.size() - 1, " more");
  }

  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override {
    return ReadRecord(index, [&](const ExampleRecord& record) {
      for (size_t f = 0; f < features.size(); ++f) {
        const Part& part = content_.parts[f];
        SHOAL_RETURN_IF_ERROR(record.Values(part.key,
                                            part.pictures.has_value() ? &*part.pictures : nullptr,
                                            &memory_.decoding, features[f].floats));
        if (absl::Status status = CheckValues(content_.features[f], features[f].floats);
            !status.ok())
          return absl::DataLossError(status.message());
      }
      if (label.empty()) return absl::OkStatus();
      return record.Label(content_.label_key, label);
    });
  }
  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override {
    if (label.empty()) return absl::OkStatus();
    return ReadRecord(index, [&](const ExampleRecord& record) {
      return record.Label(content_.label_key, label);
    });
  }

 private:
  template <typename Use>
  absl::Status ReadRecord(uint64_t index, const Use& use) const {
    if (index >= size()) {
      return absl::OutOfRangeError(
          absl::StrCat(LabelSource(), ": there is no record ", index, "; the data has ", size()));
    }
    const uint64_t place = reinterpret_cast<const uint64_t*>(content_.index.bytes().data())[index];
    const RecordFile& file = content_.files[place >> kOffsetBits];
    const uint64_t offset = place & ((uint64_t{1} << kOffsetBits) - 1);
    EncodedBytes data(&memory_);
    absl::Status status = file.Read(offset, &data);
    if (status.ok()) {
      status = use(ExampleRecord(data.bytes()));
      if (status.ok()) return status;
      status = WithSource(absl::StrCat(file.path(), ": the record at byte ", offset), status);
    }
    return content_.may_skip ? status : WithRemedy(status);
  }

  const Content content_;
  mutable ReadingMemory memory_;
};

}  // namespace

// Reads all records, to check their checksums.
absl::StatusOr<DataReport> InspectTfRecord(const DataSource& source) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ExpandPaths(source));
  DataReport report;
  bool can_be_opened = true;  // whether a job, which needs each record's offset, can open it
  uint64_t records = 0, bytes = 0;
  std::map<std::string, std::map<std::string, uint64_t>> keys;
  ReadingMemory memory;
  EncodedBytes data(&memory);
  for (const std::string& path : paths) {
    const absl::StatusOr<RecordFile> file = RecordFile::Open(path, source.roots);
    if (!file.ok()) return file.status();
    const absl::Status scanned = file->Scan([&](uint64_t offset) {
      ++records;
      absl::Status status = file->Read(offset, &data);
      bytes += data.bytes().size();
      if (status.ok()) {
        status = ExampleRecord(data.bytes())
                     .Describe([&](std::string_view key, const std::string& kind) {
                       const std::string name = Printable(key, kMaxNameBytes);
                       if (keys.size() >= kMaxKeys && !keys.contains(name)) return;
                       auto& kinds = keys[name];
                       if (kinds.size() < kMaxKinds || kinds.contains(kind)) ++kinds[kind];
                     });
        if (!status.ok()) {
          status = absl::DataLossError(absl::StrCat(path, ": the record at byte ", offset, ": ",
                                                    std::string(status.message())));
        }
      }
      if (!status.ok()) report.AddDamage(status);
      if (IsDamage(status)) ++report.skippable_count;
      return absl::OkStatus();
    });
    if (scanned.ok()) continue;
    report.AddDamage(scanned);
    can_be_opened = false;
  }
  if (!can_be_opened) report.skippable_count = 0;
  report.lines.push_back(absl::StrCat(records, " records in ", paths.size(),
                                      paths.size() == 1 ? " file, " : " files, ",
                                      FormatBytes(bytes)));
  for (const auto& [key, kinds] : keys) {
    std::string line = absl::StrCat("key ", key, ":");
    size_t shown = 0;
    for (const auto& [kind, count] : kinds) {
      if (++shown > 5) break;
      absl::StrAppend(&line, shown > 1 ? ", " : " ", kind, " in ", count);
    }
    if (kinds.size() > 5) absl::StrAppend(&line, " and ", kinds.size() - 5, " other kinds");
    report.lines.push_back(line);
  }
  return report;
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenTfRecord(const DataSource& source,
                                                      const std::vector<Feature>& inputs) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ExpandPaths(source));
  if (paths.size() > kMaxFiles) {
    return absl::InvalidArgumentError(absl::StrCat(paths[0], ": is one of ", paths.size(),
                                                   " files; expected at most ", kMaxFiles));
  }
  SHOAL_ASSIGN_OR_RETURN(TemporaryTable index, TemporaryTable::Make(paths[0]));
  TfRecord::Content content{.index = std::move(index),
                            .features = inputs,
                            .label_key = source.labels,
                            .label_shape = source.unlabelled ? kNoLabel : Shape{},
                            .may_skip = source.damaged == "skip"};
  SHOAL_ASSIGN_OR_RETURN(const auto matched, MatchFeatures(source.features, inputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    Part& part = content.parts.emplace_back(Part{.key = matched[i]->from[0]});
    absl::StatusOr<PictureLoader> pictures = PictureLoader::Make(source, inputs[i]);
    const bool must_be_pictures = inputs[i].shape.size() == 3 && source.image_height > 0;
    // Any other input that does not accept pictures accepts numbers.
    if (!pictures.ok() && must_be_pictures) return pictures.status();
    if (pictures.ok()) part.pictures = *std::move(pictures);
  }
  for (const std::string& path : paths) {
    SHOAL_ASSIGN_OR_RETURN(RecordFile file, RecordFile::Open(path, source.roots));
    const uint64_t number = uint64_t{content.files.size()} << kOffsetBits;
    SHOAL_RETURN_IF_ERROR(file.Scan([&](uint64_t offset) {
      const uint64_t place = number | offset;
      return content.index.Append(std::span(reinterpret_cast<const char*>(&place), sizeof(place)));
    }));
    content.files.push_back(std::move(file));
  }
  SHOAL_RETURN_IF_ERROR(content.index.Finish());
  if (content.index.size() == 0) return absl::DataLossError(paths[0] + ": has no record");
  return std::make_unique<TfRecord>(std::move(content));
}

}  // namespace shoal
