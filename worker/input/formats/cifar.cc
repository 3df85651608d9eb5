// CIFAR-10 and CIFAR-100 in their binary version (https://www.cs.toronto.edu/~kriz/cifar.html):
//   file    = record*
//   record  = label pixels        of CIFAR-10
//           | coarse fine pixels  of CIFAR-100
//   label, coarse, fine = one byte
//   pixels  = 1024 red, 1024 green, 1024 blue bytes, each 32 rows of 32

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/dataset/data_formats.h"
#include "worker/input/dataset/feature_shapes.h"
#include "worker/input/files/file_content.h"

namespace shoal {
namespace {

constexpr int64_t kSide = 32;
constexpr int kChannels = 3;
constexpr uint64_t kPlane = kSide * kSide;
constexpr uint64_t kMaxRecordBytes = 2 + kChannels * kPlane;

struct Version {
  const char* name;
  uint64_t label_bytes;
  uint64_t label_at;
  uint8_t classes;
  uint64_t record_bytes() const { return label_bytes + kChannels * kPlane; }
};

Version VersionOf(const DataSource& source) {
  if (source.format == "cifar10") return {"CIFAR-10", 1, 0, 10};
  if (source.label_mode == "coarse") return {"CIFAR-100", 2, 0, 20};
  return {"CIFAR-100", 2, 1, 100};
}

class Cifar : public Dataset {
 public:
  struct Part {
    std::string path;
    FileDescriptor file;
    uint64_t end;  // number of examples up to the end of this part
  };
  Cifar(Version version, std::vector<Part> parts, Feature feature)
      : version_(version), parts_(std::move(parts)), features_({std::move(feature)}) {}

  uint64_t size() const override { return parts_.back().end; }
  const std::vector<Feature>& features() const override { return features_; }
  const Shape& label_shape() const override { return label_shape_; }
  std::string LabelSource() const override {
    return parts_.size() == 1 ? parts_[0].path
                              : absl::StrCat(parts_[0].path, " and ", parts_.size() - 1, " more");
  }

  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override {
    uint8_t record[kMaxRecordBytes];
    SHOAL_RETURN_IF_ERROR(ReadRecord(index, version_.record_bytes(), record, label));
    const uint8_t* const pixels = record + version_.label_bytes;
    if (features[0].bytes.empty()) {
      PutChannelsLast(pixels, features[0].floats.data());
    } else {
      PutChannelsLast(pixels, features[0].bytes.data());
    }
    return absl::OkStatus();
  }

  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override {
    uint8_t record[kMaxRecordBytes];
    return ReadRecord(index, version_.label_bytes, record, label);
  }

 private:
  template <typename Number>
  static void PutChannelsLast(const uint8_t* pixels, Number* out) {
    for (uint64_t i = 0; i < kPlane; ++i) {
      for (int c = 0; c < kChannels; ++c) out[i * kChannels + c] = pixels[c * kPlane + i];
    }
  }

  // Reads the first `size` bytes of a record.
  absl::Status ReadRecord(uint64_t index, uint64_t size, uint8_t* record,
                          std::span<float> label) const {
    if (index >= this->size()) {
      return absl::OutOfRangeError(absl::StrCat(LabelSource(), ": there is no example ", index,
                                                "; the data has ", this->size()));
    }
    size_t part = 0;
    while (index >= parts_[part].end) ++part;
    const uint64_t offset =
        (part == 0 ? index : index - parts_[part - 1].end) * version_.record_bytes();
    SHOAL_RETURN_IF_ERROR(ReadAt(parts_[part].file, parts_[part].path, offset, record, size));
    const uint8_t number = record[version_.label_at];
    if (number >= version_.classes) {
      return absl::DataLossError(absl::StrCat(parts_[part].path, ": at byte ",
                                              offset + version_.label_at, ": label ", number,
                                              "; expected 0 to ", version_.classes - 1));
    }
    label[0] = number;
    return absl::OkStatus();
  }

  const Version version_;
  const std::vector<Part> parts_;
  const std::vector<Feature> features_;
  const Shape label_shape_ = {};
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenCifar(const DataSource& source,
                                                   const std::vector<Feature>& inputs) {
  const Version version = VersionOf(source);
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ExpandPaths(source));
  if (inputs.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        paths[0], ": ", version.name, " has data for one input; the model has ", inputs.size()));
  }
  SHOAL_ASSIGN_OR_RETURN(const Shape shape,
                         ShapeForInput({kSide, kSide, kChannels}, inputs[0], paths[0]));
  std::vector<Cifar::Part> parts;
  uint64_t examples = 0;
  for (const std::string& path : paths) {
    uint64_t size = 0;
    SHOAL_ASSIGN_OR_RETURN(
        FileDescriptor file,
        OpenRegularFile(path, source.roots, "expected a file of the binary version", &size));
    if (size == 0 || size % version.record_bytes() != 0) {
      return absl::DataLossError(
          absl::StrCat(path, ": has ", size, " bytes; expected records of ", version.record_bytes(),
                       " bytes, as the binary version of ", version.name, " has them"));
    }
    examples += size / version.record_bytes();
    parts.push_back({path, std::move(file), examples});
  }
  return std::make_unique<Cifar>(
      version, std::move(parts),
      Feature{.name = inputs[0].name, .shape = shape, .type = inputs[0].type, .bytes = true});
}

absl::StatusOr<DataReport> InspectCifar(const DataSource& source) {
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> cifar,
                         OpenCifar(source, {{.name = "x", .shape = {kSide, kSide, kChannels}}}));
  DataReport report;
  std::vector<uint64_t> counts(VersionOf(source).classes);
  for (uint64_t i = 0; i < cifar->size(); ++i) {
    float label = 0;
    const absl::Status status = cifar->ReadLabel(i, std::span(&label, 1));
    if (status.ok()) {
      ++counts[static_cast<size_t>(label)];
    } else {
      report.AddDamage(status);
    }
  }
  report.lines.push_back(
      absl::StrCat(cifar->size(), " pictures of 32 x 32, ", counts.size(), " classes"));
  for (size_t i = 0; i < counts.size(); ++i)
    report.lines.push_back(absl::StrCat("class ", i, ": ", counts[i]));
  return report;
}

}  // namespace shoal
