#include "common/model/keras/layer_table.h"
#include "common/model/keras/merge.h"

namespace shoal {

extern const LayerType kMinimumLayer = {
    "Minimum", LayerType::Inputs::kSeveral,
    "The smallest of the inputs, element by element; shapes broadcast",
    ReadAs<FoldLayer<BinaryOp::Kind::kMinimum>>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
