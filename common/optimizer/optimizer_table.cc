#include "common/optimizer/optimizer_table.h"

#include <map>

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
  std::vector<std::vector<std::string>> described;  // by type
  std::map<std::string, size_t> types;              // that have an option so described
  for (const OptimizerType& type : kOptimizerTypes) {
    JsonErrors errors("");
    KerasOptions options(KerasObject{}, &errors);
    type.make(options);
    described.push_back(options.descriptions());
    for (const std::string& option : described.back()) ++types[option];
  }
  const auto row = [&](const std::string& name, const std::vector<std::string>& options,
                       bool in_all) {
    std::vector<std::string> shown;
    for (const std::string& option : options) {
      if ((types[option] == described.size()) == in_all) shown.push_back(option);
    }
    return absl::StrCat("| ", name, " | ", absl::StrJoin(shown, ", "), " |");
  };
  std::vector<std::string> rows = {row("all", described.front(), true)};
  for (size_t i = 0; i < described.size(); ++i) {
    rows.push_back(row(absl::StrCat("`", kOptimizerTypes[i].class_name, "`"), described[i], false));
  }
  return rows;
}

}  // namespace shoal
