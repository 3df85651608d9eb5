#include "common/model/keras/layer_table.h"
#include "common/model/keras/merge.h"

namespace shoal {

extern const LayerType kMaximumLayer = {
    "Maximum", LayerType::Inputs::kSeveral,
    "The largest of the inputs, element by element; shapes broadcast",
    ReadAs<FoldLayer<BinaryOp::Kind::kMaximum>>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
