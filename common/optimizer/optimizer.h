#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/json/json_errors.h"
#include "common/json/keras_options.h"
#include "common/optimizer/clipping.h"
#include "common/optimizer/decay_exclusions.h"
#include "common/optimizer/schedules/schedule.h"
#include "common/optimizer/update.h"
#include "common/optimizer/weight_average.h"

namespace shoal {

template <typename Made>
class KerasTable;

// An update rule as Keras configures it. It has no state: the caller keeps the state in slots, each
// as long as the values. Each class of Keras is one file here, made by the table in
// optimizer_table.cc; docs/contributing/adding-a-kind.md shows how to add one. Immutable after
// construction, thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // {"class_name": …, "config": …} with every option that affects a number; MakeOptimizer() reads
  // it. Canonical: equal optimizers give equal texts.
  const std::string& config() const { return config_; }

  // The prefixes under which slots are stored: "adam_m", "adam_v". Their number is the number of
  // slots.
  const std::vector<std::string>& slot_names() const { return slot_names_; }
  // The initial value of every element of a slot.
  float initial_slot_value(int slot) const { return initial_slot_values_[slot]; }

  // The clipping of gradients before an update.
  const Clipping& clipping() const { return clipping_; }

  // The slot with a moving average of the values (use_ema), which replaces them in the trained
  // model. Empty if there is none.
  std::string average_slot() const { return average_.used ? kAverageSlot : ""; }

  // Whether an update needs whole variables, for example to divide by a norm. Update::Apply() then
  // takes all elements of one variable; otherwise it takes any run of elements.
  bool takes_whole_variables() const { return takes_whole_variables_; }

  // Whether each update recomputes the values from sums with its own learning rate. A special rate
  // for one update then also scales the effect of all updates before it.
  bool recomputes_values() const { return recomputes_values_; }

  // The learning rate of update number `iteration`, 1 for the first.
  double LearningRate(uint64_t iteration) const {
    return schedule_(static_cast<double>(iteration - 1));
  }
  // Deviations of one update from the rule for its number.
  struct Conditions {
    bool decays = true;     // applies weight decay (DecayExclusions::Excludes)
    double rate_scale = 1;  // factor of the learning rate
    // The number to look up in the learning rate schedule, for slots with fewer updates than the
    // training; 0: the update's own number.
    uint64_t scheduled_as = 0;
  };
  // Prepares update number `iteration` of these slots, 1 for the first. The result must not outlive
  // the optimizer.
  std::unique_ptr<const Update> Prepare(uint64_t iteration, const Conditions& conditions) const;
  std::unique_ptr<const Update> Prepare(uint64_t iteration) const {
    return Prepare(iteration, Conditions());
  }

  // Predicts the values of slots that have had `iteration` updates after `more` updates like the
  // last one. Its Apply() reads values and slots and writes only `out`. Null if the slots do not
  // contain the last update.
  virtual std::unique_ptr<const Update> PrepareAhead(uint64_t iteration, double more) const;

  // The variables without weight decay.
  const DecayExclusions& decay_exclusions() const { return decay_exclusions_; }

 protected:
  // Reads the options that all classes have, with the defaults of the class.
  struct Defaults {
    double learning_rate = 0.001;
    double weight_decay = 0;
  };
  Optimizer(KerasOptions& options, Defaults defaults);

  // Adds a slot. Update::Apply() gets the slots in this order.
  void AddSlot(const std::string& name, double initial_value = 0);

  // See takes_whole_variables().
  void TakeWholeVariables() { takes_whole_variables_ = true; }
  // See recomputes_values().
  void SetRecomputesValues() { recomputes_values_ = true; }

  // The inputs of an update besides the options.
  struct Step {
    uint64_t iteration = 1;
    double learning_rate = 0;
    // The part of a value to subtract before the update: Keras's decoupled weight decay, learning
    // rate times weight_decay.
    float decay = 0;
  };
  virtual std::unique_ptr<const Update> PrepareStep(const Step& step) const = 0;

 private:
  static constexpr char kAverageSlot[] = "ema_average";

  static std::unique_ptr<const Optimizer> ReadFrom(
      const KerasTable<std::unique_ptr<Optimizer>>& table, const nlohmann::json& value,
      const std::string& path, JsonErrors* errors);

  friend std::unique_ptr<const Optimizer> ReadOptimizer(const nlohmann::json&, const std::string&,
                                                        JsonErrors*);
  friend std::unique_ptr<const Optimizer> ReadOuterOptimizer(const nlohmann::json&,
                                                             const std::string&, JsonErrors*);

  Schedule schedule_;
  double weight_decay_ = 0;
  DecayExclusions decay_exclusions_;
  Clipping clipping_;
  WeightAverage average_;
  bool takes_whole_variables_ = false;
  bool recomputes_values_ = false;
  std::vector<std::string> slot_names_;
  std::vector<float> initial_slot_values_;
  std::string config_;
};

// Reads the optimizer at `path`: a Keras config ({"class_name", "config"}) or a plain name
// ("adam"). Adds problems to `errors`; the result, null or not, is then meaningless.
std::unique_ptr<const Optimizer> ReadOptimizer(const nlohmann::json& value, const std::string& path,
                                               JsonErrors* errors);

// The same from JSON text, such as Job::optimizer. kUnimplemented: Shoal lacks the class or option.
// Otherwise kInvalidArgument.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(
    const std::string& text, const std::string& path = "$.optimizer");

// The same for the outer optimizer of the strategy local, which a ps applies to differences: any of
// the above, or one made for this purpose.
std::unique_ptr<const Optimizer> ReadOuterOptimizer(const nlohmann::json& value,
                                                    const std::string& path, JsonErrors* errors);
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOuterOptimizer(const std::string& text,
                                                                    const std::string& path);

}  // namespace shoal
