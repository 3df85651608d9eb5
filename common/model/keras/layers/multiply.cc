#include "common/model/keras/layer_table.h"
#include "common/model/keras/merge.h"

namespace shoal {

extern const LayerType kMultiplyLayer = {"Multiply", LayerType::Inputs::kSeveral,
                                         "The product of the inputs; shapes broadcast",
                                         ReadAs<FoldLayer<BinaryOp::Kind::kMultiply>>};

}  // namespace shoal
