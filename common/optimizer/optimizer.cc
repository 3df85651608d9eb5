#include "common/optimizer/optimizer.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/json_text.h"
#include "common/optimizer/optimizer_table.h"

namespace shoal {
namespace {

using nlohmann::json;

// In Keras null means none. The default of AdamW is not none.
double ReadWeightDecay(KerasOptions& options, double otherwise) {
  constexpr NumberRange kRange = {.min = 0, .max = 1000};
  constexpr char kKey[] = "weight_decay";
  double decay = otherwise;
  if (const json* given = options.given().Find(kKey); given != nullptr && given->is_null()) {
    decay = 0;
  } else {
    options.given().ReadNumber(kKey, kRange, &decay);
  }
  options.Resolve(kKey, decay,
                  absl::StrCat("`weight_decay` (", otherwise == 0 ? "null" : NumberText(otherwise),
                               "; 0 to 1000)"));
  return decay;
}

// Optimizers of Keras 2 before 2.11 have "decay", a schedule; 0 means none.
void RejectLegacyDecay(JsonObject& config) {
  const json* value = config.Find("decay");
  if (value == nullptr || value->is_null() || *value == 0) return;
  config.errors()->AddUnimplemented(
      config.PathOf("decay"),
      absl::StrCat("is ", ShortJson(*value),
                   "; this legacy decay of the learning rate must be 0 or left out: give the "
                   "schedule InverseTimeDecay as learning_rate"));
}

// Rejects options that every Keras optimizer has and Shoal lacks.
void RejectWhatIsMissing(JsonObject& config) {
  RejectUnlessNull(config, "loss_scale_factor", "loss scaling");
  RejectUnlessNull(config, "gradient_accumulation_steps", "accumulation of gradients");
  RejectLegacyDecay(config);
  // These do not affect the numbers.
  for (const char* key : {"jit_compile", "is_legacy_optimizer"}) config.Ignore(key);
}

using Read = std::unique_ptr<const Optimizer>(const json&, const std::string&, JsonErrors*);

absl::StatusOr<std::unique_ptr<const Optimizer>> Make(Read read, const std::string& text,
                                                      const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(const json value, ParseJson(text, path));
  JsonErrors errors("");
  std::unique_ptr<const Optimizer> optimizer = read(value, path, &errors);
  SHOAL_RETURN_IF_ERROR(errors.ToStatus());
  return optimizer;
}

}  // namespace

Optimizer::Optimizer(KerasOptions& options, Defaults defaults)
    : schedule_(ReadLearningRate(options, defaults.learning_rate)),
      weight_decay_(ReadWeightDecay(options, defaults.weight_decay)),
      decay_exclusions_(options, weight_decay_ != 0),
      clipping_(ReadClipping(options)),
      average_(ReadWeightAverage(options)) {
  RejectWhatIsMissing(options.given());
}

void Optimizer::AddSlot(const std::string& name, double initial_value) {
  slot_names_.push_back(name);
  initial_slot_values_.push_back(static_cast<float>(initial_value));
}

std::unique_ptr<const Update> Optimizer::Prepare(uint64_t iteration,
                                                 const Conditions& conditions) const {
  const uint64_t scheduled_as = conditions.scheduled_as > 0 ? conditions.scheduled_as : iteration;
  const double rate = LearningRate(scheduled_as) * conditions.rate_scale;
  std::unique_ptr<const Update> update =
      PrepareStep({.iteration = iteration,
                   .learning_rate = rate,
                   .decay = conditions.decays ? static_cast<float>(rate * weight_decay_) : 0});
  if (!average_.used) return update;
  return AveragingUpdate(average_, iteration, std::move(update));
}

std::unique_ptr<const Update> Optimizer::PrepareAhead(uint64_t /*iteration*/,
                                                      double /*more*/) const {
  return nullptr;
}

std::unique_ptr<const Optimizer> Optimizer::ReadFrom(
    const KerasTable<std::unique_ptr<Optimizer>>& table, const json& value, const std::string& path,
    JsonErrors* errors) {
  auto read = table.Read(value, path, errors);
  if (!read.has_value()) return nullptr;
  std::unique_ptr<Optimizer> optimizer = std::move(read->made);
  if (optimizer->average_.used) optimizer->AddSlot(kAverageSlot);
  optimizer->config_ = read->canonical.dump();
  return optimizer;
}

std::unique_ptr<const Optimizer> ReadOptimizer(const json& value, const std::string& path,
                                               JsonErrors* errors) {
  return Optimizer::ReadFrom(OptimizerTable(), value, path, errors);
}

std::unique_ptr<const Optimizer> ReadOuterOptimizer(const json& value, const std::string& path,
                                                    JsonErrors* errors) {
  return Optimizer::ReadFrom(OuterOptimizerTable(), value, path, errors);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(const std::string& text,
                                                               const std::string& path) {
  return Make(ReadOptimizer, text, path);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOuterOptimizer(const std::string& text,
                                                                    const std::string& path) {
  return Make(ReadOuterOptimizer, text, path);
}

}  // namespace shoal
