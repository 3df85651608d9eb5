#include "worker/input/dataset.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/array_file.h"
#include "worker/input/joined_errors.h"

namespace shoal {
namespace {

// Examples and labels in two array files, row by row.
class ArrayPairDataset : public Dataset {
 public:
  ArrayPairDataset(std::unique_ptr<ArrayFile> examples, std::unique_ptr<ArrayFile> labels,
                   Shape example_shape)
      : examples_(std::move(examples)),
        labels_(std::move(labels)),
        example_shape_(std::move(example_shape)) {}

  uint64_t size() const override { return examples_->rows(); }
  const Shape& example_shape() const override { return example_shape_; }
  const Shape& label_shape() const override { return labels_->row_shape(); }

  absl::Status Read(uint64_t index, std::span<float> example,
                    std::span<float> label) const override {
    SHOAL_RETURN_IF_ERROR(examples_->ReadRow(index, example));
    return ReadLabel(index, label);
  }
  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override {
    return labels_->ReadRow(index, label);
  }

 private:
  const std::unique_ptr<ArrayFile> examples_;
  const std::unique_ptr<ArrayFile> labels_;
  const Shape example_shape_;
};

// The shape that examples of `stored` shape get for a model whose inputs, without the batch axis,
// are `wanted`. Keras adds a last axis of 1 in the same way.
absl::StatusOr<Shape> ExampleShape(const ArrayFile& file, const Shape& wanted) {
  const Shape& stored = file.row_shape();
  Shape with_channel = stored;
  with_channel.push_back(1);
  if (stored == wanted || with_channel == wanted) return wanted;

  const auto batched = [](Shape shape) {
    shape.insert(shape.begin(), kBatch);
    return ShapeToString(shape);
  };
  std::string hint;
  if (ElementCount(stored) == ElementCount(wanted)) {
    hint = wanted.size() == 1 ? "; a Flatten layer at the model's beginning would take them"
                              : "; a Reshape layer at the model's beginning would take them";
  }
  return absl::InvalidArgumentError(absl::StrCat(file.path(), ": examples of shape ",
                                                 batched(stored), ", but the model's input is ",
                                                 batched(wanted), hint));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const Job::DataSource& source,
                                                     const Shape& model_input) {
  if (model_input.empty()) return absl::InvalidArgumentError("the model's input has no batch axis");
  absl::StatusOr<std::unique_ptr<ArrayFile>> examples = ArrayFile::Open(source.images);
  absl::StatusOr<std::unique_ptr<ArrayFile>> labels = ArrayFile::Open(source.labels);
  SHOAL_RETURN_IF_ERROR(JoinErrors(examples.status(), labels.status()));
  if ((*examples)->rows() != (*labels)->rows()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.images, " has ", (*examples)->rows(), " examples, but ", source.labels,
                     " has ", (*labels)->rows(), " labels; expected as many of both"));
  }
  SHOAL_ASSIGN_OR_RETURN(
      Shape example_shape,
      ExampleShape(**examples, Shape(model_input.begin() + 1, model_input.end())));
  return std::make_unique<ArrayPairDataset>(*std::move(examples), *std::move(labels),
                                            std::move(example_shape));
}

}  // namespace shoal
