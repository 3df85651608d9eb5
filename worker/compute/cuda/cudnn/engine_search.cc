#include "worker/compute/cuda/cudnn/engine_search.h"

#include <utility>

#include "common/base/status_macros.h"

namespace shoal::cuda {
namespace {

absl::StatusOr<EngineNotes> NotesOf(const Descriptor& engine) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<cudnnBackendNumericalNote_t> notes,
                         engine.Get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE));
  EngineNotes result;
  for (const cudnnBackendNumericalNote_t note : notes) {
    result.tensor_cores |= note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    result.converts_inputs_down |= note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    result.adds_in_less_than_float32 |= note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    result.nondeterministic |= note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  }
  return result;
}

// Reads cuDNN's description of one of its configs.
absl::StatusOr<Engine> Read(Descriptor config) {
  SHOAL_ASSIGN_OR_RETURN(
      const std::vector<Descriptor> engine,
      config.GetDescriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  if (engine.size() != 1) return absl::InternalError("cuDNN names a config without an engine");
  EngineConfig read;
  SHOAL_ASSIGN_OR_RETURN(read.engine, engine[0].GetOne<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  SHOAL_ASSIGN_OR_RETURN(const EngineNotes notes, NotesOf(engine[0]));
  SHOAL_ASSIGN_OR_RETURN(
      const std::vector<Descriptor> knobs,
      config.GetDescriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                            CUDNN_KNOB_TYPE_COUNTS));
  for (const Descriptor& knob : knobs) {
    SHOAL_ASSIGN_OR_RETURN(const auto type,
                           knob.GetOne<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE));
    SHOAL_ASSIGN_OR_RETURN(const int64_t value,
                           knob.GetOne<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
    read.knobs.push_back({type, value});
  }
  Engine result = {std::move(read), notes};
  result.parts.push_back(std::move(config));
  return result;
}

}  // namespace

absl::StatusOr<std::vector<Engine>> SuggestEngines(const CudnnLibrary& library,
                                                   const CudnnDevice& device,
                                                   const OperationGraph& graph,
                                                   const NodeName& node) {
  std::vector<Engine> engines;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    SHOAL_ASSIGN_OR_RETURN(Descriptor heuristics,
                           Descriptor::Create(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, node));
    SHOAL_RETURN_IF_ERROR(
        heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.descriptor()));
    SHOAL_RETURN_IF_ERROR(heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, mode));
    SHOAL_RETURN_IF_ERROR(heuristics.Set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device.properties()));
    SHOAL_RETURN_IF_ERROR(heuristics.Finalize());
    SHOAL_ASSIGN_OR_RETURN(std::vector<Descriptor> configs,
                           heuristics.GetDescriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                     CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    for (Descriptor& config : configs) {
      SHOAL_ASSIGN_OR_RETURN(Engine engine, Read(std::move(config)));
      engines.push_back(std::move(engine));
    }
  }
  return engines;
}

absl::StatusOr<Engine> MakeEngine(const CudnnLibrary& library, const CudnnDevice& device,
                                  const OperationGraph& graph, const EngineConfig& config,
                                  const NodeName& node) {
  SHOAL_ASSIGN_OR_RETURN(Descriptor engine,
                         Descriptor::Create(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR, node));
  SHOAL_RETURN_IF_ERROR(engine.Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.descriptor()));
  SHOAL_RETURN_IF_ERROR(engine.Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, config.engine));
  SHOAL_RETURN_IF_ERROR(engine.Set(CUDNN_ATTR_ENGINE_DEVICEPROP, device.properties()));
  SHOAL_RETURN_IF_ERROR(engine.Finalize());
  Engine result = {config};
  SHOAL_ASSIGN_OR_RETURN(result.notes, NotesOf(engine));

  std::vector<cudnnBackendDescriptor_t> choices;
  for (const EngineConfig::Knob& knob : config.knobs) {
    SHOAL_ASSIGN_OR_RETURN(Descriptor choice,
                           Descriptor::Create(library, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, node));
    SHOAL_RETURN_IF_ERROR(choice.Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                     static_cast<cudnnBackendKnobType_t>(knob.type)));
    SHOAL_RETURN_IF_ERROR(choice.Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, knob.value));
    SHOAL_RETURN_IF_ERROR(choice.Finalize());
    choices.push_back(choice.get());
    result.parts.push_back(std::move(choice));
  }
  SHOAL_ASSIGN_OR_RETURN(Descriptor descriptor,
                         Descriptor::Create(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, node));
  SHOAL_RETURN_IF_ERROR(descriptor.Set(CUDNN_ATTR_ENGINECFG_ENGINE, engine));
  if (!choices.empty()) {
    SHOAL_RETURN_IF_ERROR(descriptor.SetDescriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choices));
  }
  SHOAL_RETURN_IF_ERROR(descriptor.Finalize());
  result.parts.push_back(std::move(engine));
  result.parts.push_back(std::move(descriptor));
  return result;
}

}  // namespace shoal::cuda
