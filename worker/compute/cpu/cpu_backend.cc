#include "worker/compute/cpu/cpu_backend.h"

#include <omp.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/backend/host_backend.h"
#include "worker/compute/cpu/cpu_program_builder.h"
#include "worker/compute/plan/fused_ops.h"

namespace shoal {
namespace cpu {
namespace {

struct ListedFactory {
  StepFactory add_steps;
  bool typed;
};
// By Op::type().
const std::map<std::string, ListedFactory>& Factories() {
  static const auto& factories = *new std::map<std::string, ListedFactory>{
#define KERNEL(TYPE) {#TYPE, {TYPE, false}},
#define TYPED(TYPE) {#TYPE, {TYPE, true}},
#define FUSED(TYPE, FACTORY) {#TYPE, {FACTORY, true}},
#include "worker/compute/cpu/kernel_list.inc"
#undef FUSED
#undef TYPED
#undef KERNEL
  };
  return factories;
}

// Whether oneDNN uses these instructions here. A set of instructions has the bits of all that it
// includes.
bool HasIsa(dnnl::cpu_isa isa) {
  const int wanted = static_cast<int>(isa);
  return (static_cast<int>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

class CpuBackend : public HostBackend {
 public:
  std::string name() const override { return "cpu"; }

  bool Supports(const Node& node) const override {
    const auto* fused = dynamic_cast<const BatchNormalizationBackwardFusedOp*>(node.op.get());
    if (fused != nullptr && (fused->has_total() || fused->has_dbias)) return false;
    const auto found = Factories().find(node.op->type());
    if (found == Factories().end()) return false;
    if (node.compute_dtype == ComputeDtype::kFloat32) return true;
    return node.compute_dtype == ComputeDtype::kBfloat16 && has_bfloat16_ && found->second.typed;
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
    // Measured at a few dozen rows: oneDNN's matrix products are faster with AVX-512, OpenBLAS's
    // without it.
    const bool prefer_onednn_matmul = HasIsa(dnnl::cpu_isa::avx512_core);
    CpuProgramBuilder program(&builder, engine_, prefer_onednn_matmul);
    for (const Node& node : builder.plan().nodes()) {
      builder.BeginWork(ModelTypeOf(*node.op));
      SHOAL_RETURN_IF_ERROR(Factories().at(node.op->type()).add_steps(node, program));
    }
    // The caller reads the prediction in row-major order.
    const ValueId prediction = builder.plan().training_graph().prediction;
    builder.Bind(prediction, program.RowMajor(prediction));
    return absl::OkStatus();
  }

  // AVX-512 BF16 or AMX. Without these, oneDNN is slower in bfloat16 than in float32.
  const bool has_bfloat16_ = HasIsa(dnnl::cpu_isa::avx512_core_bf16);
  const dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> CreateCpuBackend() { return std::make_unique<cpu::CpuBackend>(); }

}  // namespace shoal
