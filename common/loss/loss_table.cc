#include "common/loss/loss_table.h"

// Every loss in one line: Keras's class, and Keras's short name for it. The file of its name
// defines MakeCLASSLoss.
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

#define SHOAL_LOSS_LINE(CLASS, SHORT) {#CLASS, Make##CLASS##Loss, SHORT},
constexpr KerasType<std::unique_ptr<KerasLoss>> kLosses[] = {SHOAL_LOSSES(SHOAL_LOSS_LINE)};
#undef SHOAL_LOSS_LINE

}  // namespace

KerasTable<std::unique_ptr<KerasLoss>> LossTable() { return {"a loss", kLosses}; }

}  // namespace shoal
