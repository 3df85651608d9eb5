#include "common/model/keras/options/initializer_config.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/json/json_text.h"
#include "common/json/keras_object.h"
#include "common/json/keras_options.h"
#include "common/model/keras/options/number_list.h"
#include "common/model/keras_layers.h"

namespace shoal {
namespace {

using InitializerKind = Initializer::Kind;
using FanMode = Initializer::FanMode;
using Distribution = Initializer::Distribution;

// The max elements of an orthogonal matrix. Making one takes time in proportion to its size times
// its shorter side.
constexpr int64_t kMaxOrthogonalElements = int64_t{1} << 24;

void ReadConstant(KerasOptions& options, Initializer* result) {
  result->kind = InitializerKind::kConstant;
  const JsonNode value = options["value"];
  const std::vector<double> numbers = options.Take(ReadNumbers(value, 0), {0});
  if (numbers.size() == 1) {
    result->a = numbers[0];
    return;
  }
  options.Take(value.Unimplemented(absl::StrCat(
      "Shoal's constants are one number for all elements, got ", numbers.size(),
      "; values of their own come with a model that is saved with its weights, as .keras")));
}

void ReadUniform(KerasOptions& options, Initializer* result) {
  result->kind = InitializerKind::kUniform;
  result->a = options.Number("minval", -0.05, kAllNumbers);
  result->b = options.Number("maxval", 0.05, kAllNumbers);
  if (result->a <= result->b) return;
  options.Take(options["minval"].Invalid(absl::StrCat(result->a, " is above maxval ", result->b)));
}

void ReadNormal(KerasOptions& options, InitializerKind kind, Initializer* result) {
  result->kind = kind;
  result->a = options.Number("mean", 0, kAllNumbers);
  result->b = options.Number("stddev", 0.05, kNonNegativeNumbers);
}

void ReadVarianceScaling(KerasOptions& options, Initializer* result) {
  constexpr FanMode kFanModes[] = {FanMode::kFanIn, FanMode::kFanOut, FanMode::kFanAvg};
  // "normal" is Keras's first name of the truncated one.
  constexpr Distribution kDistributions[] = {
      Distribution::kTruncatedNormal, Distribution::kTruncatedNormal,
      Distribution::kUntruncatedNormal, Distribution::kUniform};
  NumberRange scales = kNonNegativeNumbers;
  scales.above_min = true;
  result->kind = InitializerKind::kVarianceScaling;
  result->a = options.Number("scale", 1, scales);
  result->fan_mode = kFanModes[options.OneOf("mode", {"fan_in", "fan_out", "fan_avg"}, 0)];
  result->distribution = kDistributions[options.OneOf(
      "distribution", {"truncated_normal", "normal", "untruncated_normal", "uniform"}, 0)];
}

void ReadMatrix(KerasOptions& options, InitializerKind kind, Initializer* result) {
  result->kind = kind;
  result->a = options.Number("gain", 1, kAllNumbers);
}

absl::Status ReadWindow(const JsonNode& json, FourierKernel* kernel) {
  kernel->window = "";
  if (json.is_null()) return absl::OkStatus();
  for (size_t i = 0; json.is_array() && i < json.size(); ++i) {
    SHOAL_ASSIGN_OR_RETURN(kernel->values.emplace_back(), json.at(i).Number());
  }
  if (json.is_array()) {
    return json.size() > 0 ? absl::OkStatus() : json.Invalid("a window of no values");
  }
  SHOAL_ASSIGN_OR_RETURN(kernel->window, json.String());
  const std::vector<std::string> known = FourierWindowNames();
  if (std::find(known.begin(), known.end(), kernel->window) != known.end()) return absl::OkStatus();
  return json.Unimplemented(
      absl::StrCat("Shoal has no window ", json.Text(), SuggestName(kernel->window, known)));
}

void ReadFourier(KerasOptions& options, Initializer* result) {
  using Scaling = FourierKernel::Scaling;
  FourierKernel kernel;
  kernel.imaginary = options.OneOf("side", {"real", "imag"}, 0) == 1;
  // Null means no window and no scaling. Absent ones have the defaults of `kernel`.
  const JsonNode window = options["window"];
  if (options.given().Contains("window")) options.Take(ReadWindow(window, &kernel));
  const size_t scaling = options.OneOf("scaling", {"density", "spectrum"}, 0);
  if (options.given().Contains("scaling")) {
    kernel.scaling = options["scaling"].is_null() ? Scaling::kNone
                     : scaling == 0               ? Scaling::kDensity
                                                  : Scaling::kSpectrum;
  }
  kernel.periodic = options.Flag("periodic", false);
  *result = {.kind = InitializerKind::kFourier, .fourier = std::make_shared<FourierKernel>(kernel)};
}

// An initializer that is variance scaling with fixed options.
struct NamedScaling {
  const char* name;
  double scale;
  FanMode fan_mode;
  Distribution distribution;
};
constexpr NamedScaling kNamedScalings[] = {
    {"glorot_uniform", 1, FanMode::kFanAvg, Distribution::kUniform},
    {"glorot_normal", 1, FanMode::kFanAvg, Distribution::kTruncatedNormal},
    {"he_uniform", 2, FanMode::kFanIn, Distribution::kUniform},
    {"he_normal", 2, FanMode::kFanIn, Distribution::kTruncatedNormal},
    {"lecun_uniform", 1, FanMode::kFanIn, Distribution::kUniform},
    {"lecun_normal", 1, FanMode::kFanIn, Distribution::kTruncatedNormal},
};

// Returns "glorot_uniform" for this name and for "GlorotUniform", and resolves Keras's aliases.
// Returns an unknown name unchanged.
std::string Canonical(const std::string& name) {
  std::string plain = absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"_", ""}});
  if (plain == "identityinitializer") plain = "identity";
  if (plain == "orthogonalinitializer") plain = "orthogonal";
  if (plain == "stftinitializer") plain = "stft";
  if (plain == "zero") plain = "zeros";
  if (plain == "one") plain = "ones";
  if (plain == "uniform") plain = "randomuniform";
  if (plain == "normal") plain = "randomnormal";
  for (const std::string& known : KerasInitializerNames()) {
    if (absl::StrReplaceAll(known, {{"_", ""}}) == plain) return known;
  }
  return name;
}

// Reads all options except the seed. Returns false if Shoal has no initializer of this name.
bool ReadNamed(const std::string& name, KerasOptions& options, Initializer* result) {
  for (const NamedScaling& scaling : kNamedScalings) {
    if (name != scaling.name) continue;
    *result = {.kind = InitializerKind::kVarianceScaling,
               .a = scaling.scale,
               .fan_mode = scaling.fan_mode,
               .distribution = scaling.distribution};
    return true;
  }
  if (name == "zeros" || name == "ones") {
    result->a = name == "ones" ? 1 : 0;
  } else if (name == "constant") {
    ReadConstant(options, result);
  } else if (name == "random_uniform") {
    ReadUniform(options, result);
  } else if (name == "random_normal") {
    ReadNormal(options, InitializerKind::kNormal, result);
  } else if (name == "truncated_normal") {
    ReadNormal(options, InitializerKind::kTruncatedNormal, result);
  } else if (name == "variance_scaling") {
    ReadVarianceScaling(options, result);
  } else if (name == "orthogonal") {
    ReadMatrix(options, InitializerKind::kOrthogonal, result);
  } else if (name == "identity") {
    ReadMatrix(options, InitializerKind::kIdentity, result);
  } else if (name == "stft") {
    ReadFourier(options, result);
  } else {
    return false;
  }
  return true;
}

// Reads a seed, or the seed in an object, which Keras writes for a seed generator. -1 if absent.
absl::StatusOr<int64_t> ReadSeed(JsonNode seed) {
  SHOAL_RETURN_IF_ERROR(seed.ExpectKerasOwn());
  if (seed.is_object()) seed = seed["config"]["seed"];
  return seed.Integer({std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()},
                      -1);
}

absl::Status CheckFourierShape(const InitializerConfig& initializer, const Shape& shape) {
  if (shape.size() != 3 || shape[1] != 1 || shape[2] < 2) {
    return initializer.json.Invalid(
        absl::StrCat("this initializer makes a variable (window, 1, frequencies), of two "
                     "frequencies or more; the variable has shape ",
                     ShapeToString(shape)));
  }
  const size_t values = initializer.initializer.fourier->values.size();
  if (values == 0 || static_cast<int64_t>(values) == shape[0]) return absl::OkStatus();
  return initializer.json["config"]["window"].Invalid(
      absl::StrCat("has ", values, " values; the variable of shape ", ShapeToString(shape),
                   " needs ", shape[0]));
}

}  // namespace

std::vector<std::string> KerasInitializerNames() {
  return {"constant",   "glorot_normal",    "glorot_uniform",   "he_normal",
          "he_uniform", "identity",         "lecun_normal",     "lecun_uniform",
          "ones",       "orthogonal",       "random_normal",    "random_uniform",
          "stft",       "truncated_normal", "variance_scaling", "zeros"};
}

absl::StatusOr<InitializerConfig> ReadInitializer(const JsonNode& json,
                                                  const std::string& default_name) {
  SHOAL_ASSIGN_OR_RETURN(const KerasObject object, ReadModelPart(json, default_name));
  JsonErrors errors("");
  KerasOptions options(object, &errors);
  Initializer result;
  if (!ReadNamed(Canonical(object.class_name), options, &result)) {
    errors.AddUnimplemented(object.name_path,
                            absl::StrCat("Shoal has no initializer ", ShortJson(object.class_name),
                                         SuggestName(object.class_name, KerasInitializerNames())));
    return errors.ToStatus();
  }
  result.seed = options.Take(ReadSeed(options["seed"]), int64_t{-1});
  SHOAL_RETURN_IF_ERROR(options.Finish());
  return InitializerConfig{.json = json, .initializer = result};
}

absl::Status CheckShape(const InitializerConfig& initializer, const Shape& shape) {
  const InitializerKind kind = initializer.initializer.kind;
  if (kind == InitializerKind::kFourier) return CheckFourierShape(initializer, shape);
  if (kind != InitializerKind::kIdentity && kind != InitializerKind::kOrthogonal)
    return absl::OkStatus();
  const bool fits = kind == InitializerKind::kIdentity ? shape.size() == 2 : shape.size() >= 2;
  if (!fits) {
    return initializer.json.Invalid(absl::StrCat(
        "this initializer needs ", kind == InitializerKind::kIdentity ? "" : "at least ",
        "two axes; the variable has shape ", ShapeToString(shape)));
  }
  if (kind == InitializerKind::kOrthogonal && ElementCount(shape) > kMaxOrthogonalElements) {
    return initializer.json.Unimplemented(
        absl::StrCat("Shoal makes orthogonal matrices of up to ", kMaxOrthogonalElements,
                     " elements; the variable has shape ", ShapeToString(shape)));
  }
  return absl::OkStatus();
}

}  // namespace shoal
