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

// An update rule as Keras configures it, without state: that lies in slots, which the caller keeps,
// each as long as the values. Each class of Keras is one file here, made by the table in
// optimizer_table.cc; docs/contributing.md shows how one is added. Immutable after construction,
// thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // {"class_name": …, "config": …} with every option that changes a number: what MakeOptimizer()
  // reads back. Canonical: equal optimizers give equal texts.
  const std::string& config() const { return config_; }

  // "adam_m", "adam_v": the prefixes under which slots are stored; also their number.
  const std::vector<std::string>& slot_names() const { return slot_names_; }
  // First value of every element of a slot.
  float initial_slot_value(int slot) const { return initial_slot_values_[slot]; }

  // What is done to gradients before they are given to an update.
  const Clipping& clipping() const { return clipping_; }

  // The slot that holds a moving average of the values (use_ema), which stand in their place in the
  // trained model; empty: there is none.
  std::string average_slot() const { return average_.used ? kAverageSlot : ""; }

  // Whether an update needs a variable as a whole, as where it divides by a norm: Update::Apply()
  // is then called with all elements of one variable. Otherwise with any run of elements.
  bool takes_whole_variables() const { return takes_whole_variables_; }

  // Whether each update computes the values anew from sums, by its learning rate: all that was
  // before is then scaled by a rate that is this update's alone.
  bool scales_all_by_its_rate() const { return scales_all_by_its_rate_; }

  // Of update number `iteration`, 1 for the first.
  double LearningRate(uint64_t iteration) const {
    return schedule_(static_cast<double>(iteration - 1));
  }
  // How one update differs from what its number says.
  struct Conditions {
    bool decays = true;     // with weight decay (DecayExclusions::Excludes)
    double rate_scale = 1;  // times its learning rate
    // The number by which the schedule gives the learning rate, where slots have had fewer updates
    // than the training; 0: the update's own.
    uint64_t scheduled_as = 0;
  };
  // Update number `iteration` of these slots, 1 for the first; must not outlive the optimizer.
  std::unique_ptr<const Update> Prepare(uint64_t iteration, const Conditions& conditions) const;
  std::unique_ptr<const Update> Prepare(uint64_t iteration) const {
    return Prepare(iteration, Conditions());
  }

  // Where the values of slots that have had so many updates are expected to be after `more` of them
  // that are like the last one: its Apply() reads values and slots, and writes `out` alone. Null
  // where the slots do not say it.
  virtual std::unique_ptr<const Update> PrepareAhead(uint64_t iteration, double more) const;

  // The variables that are updated without weight decay.
  const DecayExclusions& decay_exclusions() const { return decay_exclusions_; }

 protected:
  // Reads the options that all classes have. The defaults of a class are its own.
  struct Defaults {
    double learning_rate = 0.001;
    double weight_decay = 0;
  };
  Optimizer(KerasOptions& options, Defaults defaults);

  // Adds a slot; Update::Apply() gets them in this order.
  void AddSlot(const std::string& name, double initial_value = 0);

  // See takes_whole_variables().
  void TakeWholeVariables() { takes_whole_variables_ = true; }
  // See scales_all_by_its_rate().
  void ScaleAllByItsRate() { scales_all_by_its_rate_ = true; }

  // What an update is prepared from, beside the options.
  struct Step {
    uint64_t iteration = 1;
    double learning_rate = 0;
    // What part of a value is taken away before the update: Keras's decoupled weight decay,
    // learning rate times weight_decay.
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
  bool scales_all_by_its_rate_ = false;
  std::vector<std::string> slot_names_;
  std::vector<float> initial_slot_values_;
  std::string config_;
};

// Reads an optimizer that stands at `path`: a Keras config ({"class_name", "config"}) or a plain
// name ("adam"). What is wrong is added to `errors`, and what is returned then, null or not, is of
// no use.
std::unique_ptr<const Optimizer> ReadOptimizer(const nlohmann::json& value, const std::string& path,
                                               JsonErrors* errors);

// The same from JSON text, such as Job::optimizer. kUnimplemented: a class or option that Shoal
// lacks; else kInvalidArgument.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(
    const std::string& text, const std::string& path = "$.optimizer");

// The same of what may be the outer optimizer of the strategy local, which a ps applies to
// differences: any of them, or one that is made for it.
std::unique_ptr<const Optimizer> ReadOuterOptimizer(const nlohmann::json& value,
                                                    const std::string& path, JsonErrors* errors);
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOuterOptimizer(const std::string& text,
                                                                    const std::string& path);

}  // namespace shoal
