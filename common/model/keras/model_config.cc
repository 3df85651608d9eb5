#include "common/model/keras/model_config.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {

absl::StatusOr<ValueId> ModelConfig::Call(LayerCall& call) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                         CallLayers(call.inputs(), call.graph()));
  if (outputs.size() == 1) return outputs[0];
  return call.Invalid(
      absl::StrCat("has ", outputs.size(), " outputs; a model in another must have one"));
}

bool IsInputLayer(const Layer& layer) { return layer.type->inputs == LayerType::Inputs::kOfModel; }

LayerSummary Summarize(const Layer& layer) {
  return {.name = layer.name,
          .class_name = layer.type->class_name,
          .output_shape = layer.output_shape,
          .parameters = layer.parameters,
          .connected_to = {}};
}

}  // namespace shoal
