#include "common/optimizer/optimizer_table.h"

// Every optimizer of `$.optimizer` in one line: its class. The file of its name defines MakeCLASS.
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
  OPTIMIZER(Lion)                   \
  OPTIMIZER(Lamb)

// Optimizers only for `$.strategy.outer_optimizer`.
#define SHOAL_OUTER_OPTIMIZERS(OPTIMIZER) OPTIMIZER(DelayedNesterov)

namespace shoal {

#define SHOAL_DECLARE_OPTIMIZER(CLASS) std::unique_ptr<Optimizer> Make##CLASS(KerasOptions&);
SHOAL_OPTIMIZERS(SHOAL_DECLARE_OPTIMIZER)
SHOAL_OUTER_OPTIMIZERS(SHOAL_DECLARE_OPTIMIZER)
#undef SHOAL_DECLARE_OPTIMIZER

namespace {

#define SHOAL_OPTIMIZER_LINE(CLASS) {#CLASS, Make##CLASS},
constexpr KerasType<std::unique_ptr<Optimizer>> kOptimizers[] = {
    SHOAL_OPTIMIZERS(SHOAL_OPTIMIZER_LINE)};
constexpr KerasType<std::unique_ptr<Optimizer>> kOuterOptimizers[] = {
    SHOAL_OPTIMIZERS(SHOAL_OPTIMIZER_LINE) SHOAL_OUTER_OPTIMIZERS(SHOAL_OPTIMIZER_LINE)};
#undef SHOAL_OPTIMIZER_LINE

constexpr ClassReplacement kReplacements[] = {
    {"DelayedNesterov", "it is an outer optimizer: $.strategy.outer_optimizer of \"local\""},
    {"LossScaleOptimizer",
     "workers that compute in float16 scale the loss themselves: give its inner_optimizer"},
    {"Muon",
     "it makes the step of a whole kernel orthogonal, for which a ps has no kernels: AdamW is the "
     "nearest"},
};

}  // namespace

KerasTable<std::unique_ptr<Optimizer>> OptimizerTable() {
  return {"an optimizer", kOptimizers, {}, kReplacements};
}

KerasTable<std::unique_ptr<Optimizer>> OuterOptimizerTable() {
  return {"an optimizer", kOuterOptimizers, {}, kReplacements};
}

}  // namespace shoal
