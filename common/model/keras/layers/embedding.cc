#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/gather.h"

namespace shoal {
namespace {

// Ids are stored as float32, which does not represent every whole number beyond this.
constexpr int64_t kMaxIds = 1 << 24;

class Embedding : public LayerConfig {
 public:
  explicit Embedding(LayerOptions& options)
      : ids_(options.RequiredInteger("input_dim", kCounts)),
        width_(options.RequiredInteger("output_dim", kCounts)),
        table_(options.Variable("embeddings", "uniform")) {
    if (ids_ > kMaxIds) {
      options.Take(options["input_dim"].Unimplemented(absl::StrCat(
          ids_, " ids are more than 2^24: Shoal holds ids as float32, which tells no more apart")));
    }
    options.ExpectFalse("mask_zero", "Shoal has no masks: every step of a sequence counts");
    options.Ignore("input_length");  // written by Keras 2; equals the input's shape
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_ASSIGN_OR_RETURN(const ValueId table, call.AddVariable(table_, {ids_, width_}));
    return call.Add(std::make_shared<GatherOp>(), {table, call.inputs()[0]});
  }

 private:
  const int64_t ids_;
  const int64_t width_;
  const VariableOptions table_;
};

}  // namespace

extern const LayerType kEmbeddingLayer = {"Embedding", LayerType::Inputs::kOne,
                                          "The row of a table for each id, of 2^24 ids at most; an "
                                          "id beyond the table gives not-a-number",
                                          ReadAs<Embedding>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
