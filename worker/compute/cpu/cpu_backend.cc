#include "worker/compute/cpu/cpu_backend.h"

#include <omp.h>

#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/backend/host_backend.h"
#include "worker/compute/cpu/cpu_program.h"
#include "worker/compute/plan/folded_padding.h"
#include "worker/compute/plan/fusions.h"
#include "worker/compute/plan/unused_borders.h"

namespace shoal {
namespace cpu {
namespace {

// By Op::type().
const std::map<std::string, StepFactory>& Factories() {
  static const auto& factories = *new std::map<std::string, StepFactory>{
#define KERNEL(TYPE) {#TYPE, TYPE},
#include "worker/compute/cpu/kernel_list.inc"
#undef KERNEL
  };
  return factories;
}

class CpuBackend : public HostBackend {
 public:
  std::string name() const override { return "cpu"; }

  std::set<std::string> op_types() const override {
    std::set<std::string> types;
    for (const auto& [type, kernel] : Factories()) types.insert(type);
    return types;
  }

  absl::StatusOr<Graph> Rewrite(const Graph& model) const override {
    SHOAL_ASSIGN_OR_RETURN(const Graph cropped, CropUnusedBorders(model));
    return FoldPadding(cropped);
  }

  void UseThreads(int threads) const override { omp_set_num_threads(threads); }

 protected:
  absl::Status AddSteps(ProgramBuilder& builder) const override {
    try {
      return AddStepsOrThrow(builder);
    } catch (const dnnl::error& error) {
      return absl::InternalError(absl::StrCat("oneDNN: ", error.what()));
    }
  }

 private:
  absl::Status AddStepsOrThrow(ProgramBuilder& builder) const {
    const Graph& graph = builder.graph();
    const Fusions fusions = FindFusions(builder.plan());
    // Measured at a few dozen rows: oneDNN's matrix products are faster with AVX-512, OpenBLAS's
    // without it.
    const bool prefer_onednn_matmul = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
    CpuProgram program(&builder, &fusions, engine_, prefer_onednn_matmul);
    for (const int index : builder.plan().nodes()) {
      if (fusions.absorbed[index]) continue;
      const Node& node = graph.nodes()[index];
      builder.BeginWork(node.op->type());
      SHOAL_RETURN_IF_ERROR(Factories().at(node.op->type())(index, program));
    }
    // The caller reads the prediction in row-major order.
    const ValueId prediction = builder.plan().training_graph().prediction;
    builder.Bind(prediction, program.RowMajor(prediction));
    return absl::OkStatus();
  }

  const dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> CreateCpuBackend() { return std::make_unique<cpu::CpuBackend>(); }

}  // namespace shoal
