#include "common/loss/loss_table.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/snake_case.h"
#include "common/json/keras_object.h"

// Every loss, a line each: Keras's class, and the short name that Keras has for it. MakeCLASSLoss
// stands in the file of its name.
#define SHOAL_LOSSES(LOSS)                  \
  LOSS(BinaryCrossentropy, "bce")           \
  LOSS(BinaryFocalCrossentropy, "")         \
  LOSS(CategoricalCrossentropy, "")         \
  LOSS(CategoricalFocalCrossentropy, "")    \
  LOSS(CategoricalHinge, "")                \
  LOSS(CosineSimilarity, "")                \
  LOSS(Dice, "")                            \
  LOSS(Hinge, "")                           \
  LOSS(Huber, "")                           \
  LOSS(KLDivergence, "kld")                 \
  LOSS(LogCosh, "")                         \
  LOSS(MeanAbsoluteError, "mae")            \
  LOSS(MeanAbsolutePercentageError, "mape") \
  LOSS(MeanSquaredError, "mse")             \
  LOSS(MeanSquaredLogarithmicError, "msle") \
  LOSS(Poisson, "")                         \
  LOSS(SparseCategoricalCrossentropy, "")   \
  LOSS(SquaredHinge, "")                    \
  LOSS(Tversky, "")

namespace shoal {

#define SHOAL_DECLARE_LOSS(CLASS, SHORT) \
  std::unique_ptr<KerasLoss> Make##CLASS##Loss(KerasOptions&);
SHOAL_LOSSES(SHOAL_DECLARE_LOSS)
#undef SHOAL_DECLARE_LOSS

namespace {

#define SHOAL_LOSS_LINE(CLASS, SHORT) {#CLASS, SHORT, Make##CLASS##Loss},
constexpr LossType kLossTypes[] = {SHOAL_LOSSES(SHOAL_LOSS_LINE)};
#undef SHOAL_LOSS_LINE

}  // namespace

const LossType* FindLossType(const std::string& name) {
  const std::string bare = absl::StrReplaceAll(name, {{"_", ""}});
  for (const LossType& type : kLossTypes) {
    if (absl::EqualsIgnoreCase(bare, type.class_name)) return &type;
    if (!bare.empty() && absl::EqualsIgnoreCase(bare, type.short_name)) return &type;
  }
  return nullptr;
}

std::vector<std::string> LossTypeNames() {
  std::vector<std::string> names;
  for (const LossType& type : kLossTypes) names.emplace_back(type.class_name);
  return names;
}

std::vector<std::string> LossDocs() {
  std::vector<std::string> rows;
  for (const LossType& type : kLossTypes) {
    JsonErrors errors("");
    KerasOptions options(KerasObject{}, &errors);
    type.make(options);
    std::string names = absl::StrCat("`", SnakeCase(type.class_name), "`");
    if (*type.short_name != '\0') absl::StrAppend(&names, ", `", type.short_name, "`");
    const std::string described = absl::StrJoin(options.descriptions(), ", ");
    rows.push_back(absl::StrCat("| `", type.class_name, "` | ", names, " | ", described,
                                described.empty() ? "|" : " |"));
  }
  return rows;
}

}  // namespace shoal
