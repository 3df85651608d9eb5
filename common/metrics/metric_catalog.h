#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace shoal {

enum class MetricKind { kCounter, kGauge, kHistogram };

// One metric, as Prometheus and people see it.
struct MetricDescription {
  std::string_view name;
  std::string_view daemon;  // the daemon with the metric: "every", "coordinator", "ps", "worker"
  MetricKind kind = MetricKind::kGauge;
  std::string_view help;                        // a sentence
  std::array<std::string_view, 3> labels = {};  // unused ones are last and empty
  std::span<const double> bounds = {};          // of a histogram's buckets, ascending
};

inline constexpr double kStalenessBounds[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
inline constexpr double kApplyBounds[] = {1e-6, 1e-5, 5e-5, 1e-4, 2.5e-4, 5e-4,
                                          1e-3, 2e-3, 5e-3, 1e-2, 1e-1};
inline constexpr double kStepBounds[] = {1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1,
                                         0.25, 0.5,  1,    2.5,  5,    10,     30};

// All of Shoal's metrics: the only place that names and describes them. docs/metrics.md is made
// from it. Code names a metric by its text (see MetricName), so that a name seen in Prometheus can
// be searched for in the code.
inline constexpr MetricDescription kMetricCatalog[] = {
    // The process.
    {"process_cpu_seconds_total", "every", MetricKind::kCounter,
     "CPU time of the process, user and system."},
    {"process_resident_memory_bytes", "every", MetricKind::kGauge, "Memory in use."},
    {"process_virtual_memory_bytes", "every", MetricKind::kGauge, "Address space in use."},
    {"process_open_fds", "every", MetricKind::kGauge, "Open file descriptors."},
    {"process_max_fds", "every", MetricKind::kGauge, "Limit of open file descriptors."},
    {"process_threads", "every", MetricKind::kGauge, "Threads of the process."},
    {"process_start_time_seconds", "every", MetricKind::kGauge,
     "When the process started, in seconds since 1970."},
    {"shoal_build_info",
     "every",
     MetricKind::kGauge,
     "Always 1; the version is a label.",
     {"version"}},
    {"shoal_event_loop_lag_seconds", "every", MetricKind::kGauge,
     "Time that this scrape waited for the event loop, which runs the whole protocol."},
    {"shoal_log_lines_lost_total", "every", MetricKind::kCounter,
     "Log lines dropped because no process read stderr."},
    {"shoal_rpc_streams", "every", MetricKind::kGauge, "Streams that are open, both ways."},
    {"shoal_rpc_shared_streams", "every", MetricKind::kGauge,
     "Streams whose payloads lie in shared memory, as both ends run on one machine."},
    {"shoal_rpc_unauthorized_streams_total", "every", MetricKind::kCounter,
     "Streams rejected because their client's certificate does not permit them, at their begin or "
     "for the index that the client claims."},
    {"shoal_rpc_rejected_handshakes_total", "every", MetricKind::kCounter,
     "TLS handshakes that failed: without a certificate of a known CA, or without TLS 1.3."},
    {"shoal_rpc_insecure", "every", MetricKind::kGauge,
     "1 if the daemon serves plain traffic beyond loopback (--insecure), else 0."},
    {"shoal_rpc_queued_messages", "every", MetricKind::kGauge,
     "Messages that wait to be sent, over all streams."},
    {"shoal_rpc_queued_bytes", "every", MetricKind::kGauge,
     "Bytes that wait to be sent, over all streams."},

    // The job.
    {"shoal_job_info",
     "coordinator",
     MetricKind::kGauge,
     "Always 1; the job's name is a label.",
     {"name"}},
    {"shoal_phase",
     "coordinator",
     MetricKind::kGauge,
     "1 for the phase that the run is in: claiming, loading, training, stopping, finished or "
     "failed; 0 for the others.",
     {"phase"}},
    {"shoal_waits", "coordinator", MetricKind::kGauge,
     "Current waits of the run; each is a line of `shoal status` and of the log."},
    {"shoal_waiting_seconds",
     "coordinator",
     MetricKind::kGauge,
     "Duration and reason of the coordinator's wait for a task; absent without a wait. For "
     "workers, only while none is ready.",
     {"type", "index", "why"}},
    {"shoal_term", "coordinator", MetricKind::kGauge, "Number of the coordinator's term."},
    {"shoal_timeline", "coordinator", MetricKind::kGauge,
     "Number of the open timeline; 0 without one."},
    {"shoal_timelines_opened_total", "coordinator", MetricKind::kCounter,
     "Timelines opened or adopted; more than one: a ps was lost and the job restored."},
    {"shoal_job_steps", "coordinator", MetricKind::kGauge,
     "Steps of the whole job; absent until a worker has counted the examples."},
    {"shoal_job_epochs", "coordinator", MetricKind::kGauge,
     "Epochs of the job; absent like its steps."},
    {"shoal_epoch", "coordinator", MetricKind::kGauge, "Epoch in training, from 1."},
    {"shoal_base_step", "coordinator", MetricKind::kGauge,
     "First step that is not done; all below it are."},
    {"shoal_steps_leased_total", "coordinator", MetricKind::kCounter,
     "Steps leased to workers, repeats included."},
    {"shoal_steps_leased_again_total", "coordinator", MetricKind::kCounter,
     "Steps leased again because their worker was lost or returned them."},
    {"shoal_steps_leased_twice_total", "coordinator", MetricKind::kCounter,
     "Steps leased to a second worker because the first was too slow."},
    {"shoal_steps_done_total", "coordinator", MetricKind::kCounter,
     "Steps applied on every ps and reported, each counted once."},
    {"shoal_steps_repeated_total", "coordinator", MetricKind::kCounter,
     "Reports of steps that were done already or are beyond the window, dropped."},
    {"shoal_lease_expiries_total", "coordinator", MetricKind::kCounter,
     "Workers that reported nothing within the lease timeout and lost their steps."},
    {"shoal_examples_total", "coordinator", MetricKind::kCounter,
     "Examples of the steps done; its rate is the training's speed."},
    {"shoal_leased_steps",
     "coordinator",
     MetricKind::kGauge,
     "Steps that a worker holds.",
     {"worker"}},
    {"shoal_loss", "coordinator", MetricKind::kGauge,
     "Mean loss over the running epoch so far, or over the one before until a step is done; absent "
     "before the first step of all."},
    {"shoal_metric",
     "coordinator",
     MetricKind::kGauge,
     "A metric of the job, likewise.",
     {"metric"}},
    {"shoal_test_loss", "coordinator", MetricKind::kGauge,
     "Loss on the test set after the newest epoch that was evaluated; absent before the first."},
    {"shoal_test_metric",
     "coordinator",
     MetricKind::kGauge,
     "A metric of the job on the test set, likewise.",
     {"metric"}},
    {"shoal_learning_rate", "coordinator", MetricKind::kGauge, "Learning rate of the optimizer."},
    {"shoal_evaluation_batches_total", "coordinator", MetricKind::kCounter,
     "Batches of the test set evaluated, each counted once."},

    // The cluster.
    {"shoal_workers_ready", "coordinator", MetricKind::kGauge,
     "Workers that are connected and have job and data."},
    {"shoal_task_up",
     "coordinator",
     MetricKind::kGauge,
     "1 while the coordinator has a stream to the task, else 0; type is ps or worker. A worker "
     "that left in order is not listed.",
     {"type", "index"}},
    {"shoal_task_restarts_total",
     "coordinator",
     MetricKind::kCounter,
     "Times that another process replaced the task, since this coordinator started.",
     {"type", "index"}},
    {"shoal_rejected_jobs_total",
     "coordinator",
     MetricKind::kCounter,
     "Rejected workers and evaluators of another job; each exits with 138. type is "
     "worker or evaluator.",
     {"type"}},

    // Checkpoints.
    {"shoal_checkpoints_total", "coordinator", MetricKind::kCounter, "Checkpoints written."},
    {"shoal_checkpoint_failures_total", "coordinator", MetricKind::kCounter,
     "Checkpoints that could not be written; the log and `shoal status` say why."},
    {"shoal_checkpoint_age_seconds", "coordinator", MetricKind::kGauge,
     "Time since the newest checkpoint was written or restored from; before the first, since the "
     "coordinator started."},
    {"shoal_checkpoint_interval_seconds", "coordinator", MetricKind::kGauge,
     "checkpoint.every_seconds of the job; absent where it has none."},
    {"shoal_checkpoint_step", "coordinator", MetricKind::kGauge,
     "All steps below it are in the newest checkpoint; 0 without one."},
    {"shoal_checkpoint_duration_seconds", "coordinator", MetricKind::kGauge,
     "Duration of the newest checkpoint, from fence to commit; 0 without one."},
    {"shoal_checkpoint_bytes", "coordinator", MetricKind::kGauge,
     "Size of the newest checkpoint; 0 without one."},
    {"shoal_disk_free_bytes", "coordinator", MetricKind::kGauge,
     "Free for the coordinator, on the file system of the run directory."},
    {"shoal_disk_size_bytes", "coordinator", MetricKind::kGauge,
     "Size of the file system of the run directory."},

    // ps.
    {"shoal_ps_term", "ps", MetricKind::kGauge,
     "Number of the term that the ps has promised; 0 before the first coordinator."},
    {"shoal_ps_timeline", "ps", MetricKind::kGauge,
     "Number of the timeline that the ps is in; 0 while it is empty."},
    {"shoal_ps_coordinator_silence_seconds", "ps", MetricKind::kGauge,
     "Time since the last command of the coordinator that the ps follows. It probes once a "
     "second."},
    {"shoal_ps_chunks", "ps", MetricKind::kGauge, "Chunks that the ps holds; 0 while it is empty."},
    {"shoal_ps_loads_total", "ps", MetricKind::kCounter, "Loads that opened a timeline."},
    {"shoal_ps_updates_total", "ps", MetricKind::kCounter,
     "Gradients of chunks applied, or received to be applied with their round."},
    {"shoal_ps_repeated_updates_total", "ps", MetricKind::kCounter,
     "Pushes of a step that the chunk had received before, dropped."},
    {"shoal_ps_skipped_updates_total", "ps", MetricKind::kCounter,
     "Pushes of a step whose gradient overflowed float16: counted as applied, without an update."},
    {"shoal_ps_refused_requests_total", "ps", MetricKind::kCounter,
     "Pushes and pulls of another timeline, or of a version that is no longer kept, rejected."},
    {"shoal_ps_early_gradients", "ps", MetricKind::kGauge,
     "Gradients of chunks that wait for those of earlier steps; 0 under the strategy async."},
    {"shoal_ps_versions_before", "ps", MetricKind::kGauge,
     "Chunks whose previous version is kept until the next round begins; 0 under the "
     "strategy async."},
    {"shoal_ps_staleness_updates",
     "ps",
     MetricKind::kHistogram,
     "Updates that a chunk had between the pull that a gradient was computed from and its apply.",
     {},
     kStalenessBounds},
    {"shoal_ps_apply_seconds",
     "ps",
     MetricKind::kHistogram,
     "Time to apply the gradient of one chunk.",
     {},
     kApplyBounds},
    {"shoal_ps_streams",
     "ps",
     MetricKind::kGauge,
     "Streams that are open: exchange (a worker's) or control (a coordinator's).",
     {"kind"}},
    {"shoal_ps_payload_bytes_total",
     "ps",
     MetricKind::kCounter,
     "Gradients received from and values sent to a worker; transport is tcp or unix.",
     {"worker", "direction", "transport"}},

    // Workers.
    {"shoal_worker_connected", "worker", MetricKind::kGauge,
     "1 while the worker is accepted by a coordinator, else 0."},
    {"shoal_worker_waiting_seconds",
     "worker",
     MetricKind::kGauge,
     "Duration and reason of the worker's wait for the coordinator (type chief) or a ps; "
     "absent without a wait.",
     {"type", "index", "why"}},
    {"shoal_worker_timeline", "worker", MetricKind::kGauge,
     "Number of the timeline that the worker works in; 0 without one."},
    {"shoal_worker_steps_total", "worker", MetricKind::kCounter,
     "Steps computed and acknowledged by every ps."},
    {"shoal_worker_examples_total", "worker", MetricKind::kCounter, "Examples of these steps."},
    {"shoal_worker_overflows_total", "worker", MetricKind::kCounter,
     "Batches whose gradient overflowed float16 and was dropped."},
    {"shoal_worker_loss_scale", "worker", MetricKind::kGauge,
     "The loss scale for float16 gradients; 0 without float16."},
    {"shoal_worker_step_seconds",
     "worker",
     MetricKind::kHistogram,
     "Time of a step from its begin to the last acknowledgement.",
     {},
     kStepBounds},
    {"shoal_worker_phase_seconds_total",
     "worker",
     MetricKind::kCounter,
     "The worker's time by activity: input_wait (a batch was not ready), pull (parameters, beyond "
     "what was computed meanwhile), compute, push (gradients out and fresh values back, beyond "
     "compute), evaluate, idle (nothing "
     "to do).",
     {"phase"}},
    {"shoal_worker_leased_steps", "worker", MetricKind::kGauge,
     "Steps leased to the worker and not begun."},
    {"shoal_worker_batches_ready", "worker", MetricKind::kGauge,
     "Batches of leased steps that were in memory at the last step, its own apart."},
    {"shoal_worker_payload_bytes_total",
     "worker",
     MetricKind::kCounter,
     "Gradients sent to and values received from a ps; transport is tcp or unix.",
     {"ps", "direction", "transport"}},

    // A worker's GPU, as NVIDIA's driver reports it.
    {"shoal_gpu_busy_ratio",
     "worker",
     MetricKind::kGauge,
     "Share of about the last second in which the GPU computed, for any process.",
     {"device"}},
    {"shoal_gpu_memory_used_bytes",
     "worker",
     MetricKind::kGauge,
     "Memory of the GPU in use, by all processes.",
     {"device"}},
    {"shoal_gpu_memory_bytes", "worker", MetricKind::kGauge, "Memory of the GPU.", {"device"}},
    {"shoal_gpu_temperature_celsius",
     "worker",
     MetricKind::kGauge,
     "Temperature of the GPU.",
     {"device"}},
    {"shoal_gpu_power_watts",
     "worker",
     MetricKind::kGauge,
     "Power that the GPU draws.",
     {"device"}},
};
inline constexpr size_t kMetricCount = std::size(kMetricCatalog);

// A metric of the catalog. The compiler looks up the name; an unknown name does not compile.
class MetricName {
 public:
  consteval MetricName(const char* name) : index_(IndexOf(name)) {}  // NOLINT: meant to be implicit
  constexpr size_t index() const { return index_; }
  constexpr const MetricDescription& description() const { return kMetricCatalog[index_]; }

 private:
  static consteval size_t IndexOf(std::string_view name) {
    for (size_t i = 0; i < kMetricCount; ++i) {
      if (kMetricCatalog[i].name == name) return i;
    }
    throw "this metric is not in kMetricCatalog";  // compile time only
  }

  size_t index_;
};

}  // namespace shoal
