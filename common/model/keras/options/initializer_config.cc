#include "common/model/keras/options/initializer_config.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/model/keras/options/number_list.h"
#include "common/model/keras_layers.h"

namespace shoal {
namespace {

using InitializerKind = Initializer::Kind;
using FanMode = Initializer::FanMode;
using Distribution = Initializer::Distribution;

// The most elements of an orthogonal matrix: making one takes its size times its shorter side.
constexpr int64_t kMaxOrthogonalElements = int64_t{1} << 24;

absl::Status ReadConstant(ConfigReader& config, Initializer* result) {
  result->kind = InitializerKind::kConstant;
  const JsonNode value = config["value"];
  SHOAL_ASSIGN_OR_RETURN(const std::vector<double> numbers, ReadNumbers(value, 0));
  if (numbers.size() != 1) {
    return value.Unimplemented(absl::StrCat(
        "Shoal's constants are one number for all elements, got ", numbers.size(),
        "; values of their own come with a model that is saved with its weights, as .keras"));
  }
  result->a = numbers[0];
  return absl::OkStatus();
}

absl::Status ReadUniform(ConfigReader& config, Initializer* result) {
  result->kind = InitializerKind::kUniform;
  SHOAL_ASSIGN_OR_RETURN(result->a, config["minval"].Number(-0.05));
  SHOAL_ASSIGN_OR_RETURN(result->b, config["maxval"].Number(0.05));
  if (result->a <= result->b) return absl::OkStatus();
  return config["minval"].Invalid(absl::StrCat(result->a, " is above maxval ", result->b));
}

absl::Status ReadNormal(ConfigReader& config, InitializerKind kind, Initializer* result) {
  result->kind = kind;
  SHOAL_ASSIGN_OR_RETURN(result->a, config["mean"].Number(0));
  SHOAL_ASSIGN_OR_RETURN(result->b, config["stddev"].Number(0.05));
  if (result->b >= 0) return absl::OkStatus();
  return config["stddev"].Invalid(absl::StrCat(result->b, " is negative"));
}

absl::Status ReadVarianceScaling(ConfigReader& config, Initializer* result) {
  result->kind = InitializerKind::kVarianceScaling;
  SHOAL_ASSIGN_OR_RETURN(result->a, config["scale"].Number(1));
  if (result->a <= 0) return config["scale"].Invalid(absl::StrCat(result->a, " is not above 0"));
  SHOAL_ASSIGN_OR_RETURN(const size_t mode,
                         config["mode"].OneOf({"fan_in", "fan_out", "fan_avg"}, 0));
  result->fan_mode = mode == 0 ? FanMode::kFanIn : mode == 1 ? FanMode::kFanOut : FanMode::kFanAvg;
  // "normal" is what Keras called the truncated one first.
  SHOAL_ASSIGN_OR_RETURN(const size_t distribution,
                         config["distribution"].OneOf(
                             {"truncated_normal", "normal", "untruncated_normal", "uniform"}, 0));
  result->distribution = distribution == 2   ? Distribution::kUntruncatedNormal
                         : distribution == 3 ? Distribution::kUniform
                                             : Distribution::kTruncatedNormal;
  return absl::OkStatus();
}

absl::Status ReadMatrix(ConfigReader& config, InitializerKind kind, Initializer* result) {
  result->kind = kind;
  SHOAL_ASSIGN_OR_RETURN(result->a, config["gain"].Number(1));
  return absl::OkStatus();
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

absl::Status ReadFourier(ConfigReader& config, Initializer* result) {
  using Scaling = FourierKernel::Scaling;
  FourierKernel kernel;
  SHOAL_ASSIGN_OR_RETURN(const size_t side, config["side"].OneOf({"real", "imag"}, 0));
  kernel.imaginary = side == 1;
  // Null is none of either; absent, they are what `kernel` has.
  const JsonNode window = config["window"], scaling = config["scaling"];
  const std::vector<std::string> written = config.config().keys();
  const auto is_written = [&](const char* key) {
    return std::find(written.begin(), written.end(), key) != written.end();
  };
  if (is_written("window")) SHOAL_RETURN_IF_ERROR(ReadWindow(window, &kernel));
  SHOAL_ASSIGN_OR_RETURN(const size_t scaled, scaling.OneOf({"density", "spectrum"}, 0));
  if (is_written("scaling")) {
    kernel.scaling = scaling.is_null() ? Scaling::kNone
                     : scaled == 0     ? Scaling::kDensity
                                       : Scaling::kSpectrum;
  }
  SHOAL_ASSIGN_OR_RETURN(kernel.periodic, config["periodic"].Bool(false));
  *result = {.kind = InitializerKind::kFourier, .fourier = std::make_shared<FourierKernel>(kernel)};
  return absl::OkStatus();
}

// A name of variance scaling with everything fixed.
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

// "GlorotUniform" and "glorot_uniform" alike; Keras's aliases resolved. What is unknown stays
// itself.
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

// Sets everything but the seed. False when there is no initializer of that name.
absl::StatusOr<bool> ReadNamed(const std::string& name, ConfigReader& config, Initializer* result) {
  for (const NamedScaling& scaling : kNamedScalings) {
    if (name != scaling.name) continue;
    *result = {.kind = InitializerKind::kVarianceScaling,
               .a = scaling.scale,
               .fan_mode = scaling.fan_mode,
               .distribution = scaling.distribution};
    return true;
  }
  absl::Status status;
  if (name == "zeros" || name == "ones") {
    result->a = name == "ones" ? 1 : 0;
  } else if (name == "constant") {
    status = ReadConstant(config, result);
  } else if (name == "random_uniform") {
    status = ReadUniform(config, result);
  } else if (name == "random_normal") {
    status = ReadNormal(config, InitializerKind::kNormal, result);
  } else if (name == "truncated_normal") {
    status = ReadNormal(config, InitializerKind::kTruncatedNormal, result);
  } else if (name == "variance_scaling") {
    status = ReadVarianceScaling(config, result);
  } else if (name == "orthogonal") {
    status = ReadMatrix(config, InitializerKind::kOrthogonal, result);
  } else if (name == "identity") {
    status = ReadMatrix(config, InitializerKind::kIdentity, result);
  } else if (name == "stft") {
    status = ReadFourier(config, result);
  } else {
    return false;
  }
  if (!status.ok()) return status;
  return true;
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
  SHOAL_RETURN_IF_ERROR(json.ExpectKerasOwn());
  const JsonNode name_json = json.is_object() ? json["class_name"] : json;
  SHOAL_ASSIGN_OR_RETURN(const std::string name, name_json.String(default_name));
  ConfigReader config(json["config"], name);
  if (!config.config().is_null()) SHOAL_RETURN_IF_ERROR(config.config().ExpectObject());

  Initializer result;
  SHOAL_ASSIGN_OR_RETURN(const bool known, ReadNamed(Canonical(name), config, &result));
  if (!known) {
    return name_json.Unimplemented(absl::StrCat("Shoal has no initializer ", name_json.Text(),
                                                SuggestName(name, KerasInitializerNames())));
  }
  // A seed generator, which Keras writes as an object, has its seed inside.
  JsonNode seed = config["seed"];
  SHOAL_RETURN_IF_ERROR(seed.ExpectKerasOwn());
  if (seed.is_object()) seed = seed["config"]["seed"];
  SHOAL_ASSIGN_OR_RETURN(
      result.seed,
      seed.Integer({std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}, -1));
  SHOAL_RETURN_IF_ERROR(config.RefuseUnread());
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
