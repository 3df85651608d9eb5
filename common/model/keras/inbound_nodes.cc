#include "common/model/keras/inbound_nodes.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

using References = std::vector<TensorReference>;

// Whether it is null, or a list with only nulls at any depth: the masks of several inputs.
bool IsNothing(const JsonNode& json) {
  for (size_t i = 0; json.is_array() && i < json.size(); ++i) {
    if (!IsNothing(json.at(i))) return false;
  }
  return json.is_null() || json.is_array();
}

// Rejects arguments that change a layer's computation. Ignores Keras 3's `training`. Keras writes
// the layer's default there, but a model passes its own value to all its layers when it is called.
absl::Status RejectArguments(const JsonNode& arguments, bool keras3) {
  for (const std::string& key : arguments.keys()) {
    if (keras3 && key == "training") continue;
    const JsonNode argument = arguments[key];
    if (IsNothing(argument)) continue;
    return argument.Unimplemented(absl::StrCat("Shoal calls layers without the argument \"", key,
                                               "\", which is ", argument.Text()));
  }
  return absl::OkStatus();
}

// ["conv", 0, 0] or, in Keras 2, ["conv", 0, 0, {arguments}].
absl::StatusOr<TensorReference> ReadReference(const JsonNode& json) {
  constexpr IntegerRange kIndexes = {0, std::numeric_limits<int32_t>::max()};
  if (!json.is_array() || json.size() < 3 || json.size() > 4) {
    return json.Invalid(absl::StrCat("needs a tensor, [\"layer\", 0, 0], got ", json.Text()));
  }
  SHOAL_ASSIGN_OR_RETURN(std::string layer, json.at(0).String());
  SHOAL_ASSIGN_OR_RETURN(const int64_t call, json.at(1).Integer(kIndexes));
  SHOAL_ASSIGN_OR_RETURN(const int64_t tensor, json.at(2).Integer(kIndexes));
  if (tensor != 0) {
    return json.at(2).Unimplemented(
        absl::StrCat("Shoal has layers and models of one output, number 0, and this is number ",
                     tensor, " of \"", layer, "\"; make a model of each output, or join them"));
  }
  if (json.size() == 4) {
    if (!json.at(3).is_null()) SHOAL_RETURN_IF_ERROR(json.at(3).ExpectObject());
    SHOAL_RETURN_IF_ERROR(RejectArguments(json.at(3), false));
  }
  return TensorReference{.layer = std::move(layer), .call = call, .json = json};
}

bool IsReference(const JsonNode& json) {
  return json.is_array() && json.size() > 0 && json.at(0).is_string();
}

// Collects references at any depth of lists and objects.
absl::Status CollectReferences(const JsonNode& json, References* references) {
  if (IsReference(json)) {
    SHOAL_ASSIGN_OR_RETURN(TensorReference reference, ReadReference(json));
    references->push_back(std::move(reference));
    return absl::OkStatus();
  }
  if (json.is_object()) {
    for (const std::string& key : json.keys()) {
      SHOAL_RETURN_IF_ERROR(CollectReferences(json[key], references));
    }
    return absl::OkStatus();
  }
  SHOAL_RETURN_IF_ERROR(json.ExpectArray());
  for (size_t i = 0; i < json.size(); ++i) {
    SHOAL_RETURN_IF_ERROR(CollectReferences(json.at(i), references));
  }
  return absl::OkStatus();
}

// Collects Keras 3's tensors at any depth of lists.
absl::Status CollectTensors(const JsonNode& json, References* references) {
  if (json.is_null()) return absl::OkStatus();
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) {
      SHOAL_RETURN_IF_ERROR(CollectTensors(json.at(i), references));
    }
    return absl::OkStatus();
  }
  const JsonNode class_name = json["class_name"];
  if (class_name.is_string() && *class_name.String() == "__keras_tensor__") {
    SHOAL_ASSIGN_OR_RETURN(TensorReference reference,
                           ReadReference(json["config"]["keras_history"]));
    reference.calls_from_zero = true;
    references->push_back(std::move(reference));
    return absl::OkStatus();
  }
  if (json.is_object() && class_name.is_null()) {
    return json.Unimplemented(absl::StrCat(
        "Shoal calls models on a tensor or a list of tensors, and this is a dict of them by name, ",
        json.Text(), "; build the nested model with inputs=[...] and call it on a list"));
  }
  return json.Unimplemented(
      absl::StrCat("Shoal calls layers on tensors alone; this argument is ", json.Text()));
}

}  // namespace

absl::StatusOr<References> ReadInboundNode(const JsonNode& json) {
  References references;
  if (json.is_array()) {
    SHOAL_RETURN_IF_ERROR(CollectReferences(json, &references));
    return references;
  }
  SHOAL_RETURN_IF_ERROR(json.ExpectObject());
  SHOAL_RETURN_IF_ERROR(json["args"].ExpectArray());
  SHOAL_RETURN_IF_ERROR(CollectTensors(json["args"], &references));
  SHOAL_RETURN_IF_ERROR(RejectArguments(json["kwargs"], true));
  return references;
}

absl::StatusOr<References> ReadTensorReferences(const JsonNode& json) {
  References references;
  SHOAL_RETURN_IF_ERROR(CollectReferences(json, &references));
  if (references.empty()) {
    return json.Invalid(absl::StrCat("needs at least one [\"layer\", 0, 0], got ", json.Text()));
  }
  return references;
}

}  // namespace shoal
