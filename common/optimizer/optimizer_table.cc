#include "common/optimizer/optimizer_table.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/json/keras_object.h"

// Every optimizer, a line each: Keras's class. MakeCLASS stands in the file of its name.
#define SHOAL_OPTIMIZERS(OPTIMIZER) \
  OPTIMIZER(SGD)                    \
  OPTIMIZER(Adam)                   \
  OPTIMIZER(AdamW)                  \
  OPTIMIZER(Adamax)                 \
  OPTIMIZER(Nadam)                  \
  OPTIMIZER(Adagrad)                \
  OPTIMIZER(Adadelta)               \
  OPTIMIZER(RMSprop)                \
  OPTIMIZER(Ftrl)                   \
  OPTIMIZER(Lion)

namespace shoal {

#define SHOAL_DECLARE_OPTIMIZER(CLASS) std::unique_ptr<Optimizer> Make##CLASS(KerasOptions&);
SHOAL_OPTIMIZERS(SHOAL_DECLARE_OPTIMIZER)
#undef SHOAL_DECLARE_OPTIMIZER

namespace {

#define SHOAL_OPTIMIZER_LINE(CLASS) {#CLASS, Make##CLASS},
constexpr OptimizerType kOptimizerTypes[] = {SHOAL_OPTIMIZERS(SHOAL_OPTIMIZER_LINE)};
#undef SHOAL_OPTIMIZER_LINE

}  // namespace

const OptimizerType* FindOptimizerType(const std::string& name) {
  for (const OptimizerType& type : kOptimizerTypes) {
    if (absl::EqualsIgnoreCase(name, type.class_name)) return &type;
  }
  return nullptr;
}

std::vector<std::string> OptimizerTypeNames() {
  std::vector<std::string> names;
  for (const OptimizerType& type : kOptimizerTypes) names.emplace_back(type.class_name);
  return names;
}

std::vector<std::string> OptimizerDocs() {
  std::vector<std::string> rows;
  for (const OptimizerType& type : kOptimizerTypes) {
    JsonErrors errors("");
    KerasOptions options(KerasObject{}, &errors);
    type.make(options);
    rows.push_back(absl::StrCat("| `", type.class_name, "` | ",
                                absl::StrJoin(options.descriptions(), ", "), " |"));
  }
  return rows;
}

}  // namespace shoal
