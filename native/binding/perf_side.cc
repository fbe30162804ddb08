// See perf_side.h.
#include "binding/perf_side.h"

#include <pthread.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "binding/objects/engine_options.h"
#include "binding/objects/perf_objects.h"
#include "fabric/shm/shm.h"
#include "fabric/tcp/tcp.h"
#include "fabric/verbs_loader.h"
#include "perf/bare_endpoint.h"
#include "perf/fabric_endpoint.h"
#include "perf/pair.h"

namespace rdma_rpc::binding {
namespace {

/// A peer without a posted receive is asked again for ever, as perftest has it.
constexpr int kRnrRetryEndless = 7;

std::shared_ptr<fabric::Device> open_device(const Napi::Object& given, std::string* error) {
  const std::string name = given.Get("fabric").ToString().Utf8Value();
  if (name == "shm") return fabric::open_shm_device({}, error);
  if (name == "tcp")
    return fabric::open_tcp_device({.host = given.Get("host").ToString().Utf8Value()}, error);
  if (name == "verbs") {
    fabric::VerbsOptions options = read_verbs(given.Get("verbs"));
    options.rnr_retry = kRnrRetryEndless;
    return fabric::open_verbs_device(options, error);
  }
  *error = "unknown fabric '" + name + "' (known: shm, tcp, verbs, bare)";
  return nullptr;
}

std::unique_ptr<perf::Endpoint> open_endpoint(const Napi::Object& given, const perf::EndpointOptions& needs,
                                              std::string* error) {
  if (given.Get("fabric").ToString().Utf8Value() == "bare") {
    const std::string connection = given.Get("connection").ToString().Utf8Value();
    const auto transport = connection == "UD"   ? perf::Transport::ud
                           : connection == "UC" ? perf::Transport::uc
                                                : perf::Transport::rc;
    return perf::make_bare_endpoint(read_verbs(given.Get("verbs")), transport, needs, error);
  }
  std::shared_ptr<fabric::Device> device = open_device(given, error);
  return device == nullptr ? nullptr : perf::make_fabric_endpoint(std::move(device), needs, error);
}

/// Calls to JS from the thread of a step. When JS has ended it refuses one, and the function is gone with
/// that: nothing may touch it again.
class Tell {
 public:
  explicit Tell(const Napi::ThreadSafeFunction& function) : function_(function) {}
  ~Tell() {
    if (!refused_) function_.Release();
  }
  Tell(const Tell&) = delete;
  Tell& operator=(const Tell&) = delete;

  /// What `action` has goes with it, also when it is refused.
  template <class Action>
  void operator()(Action action) {
    if (!refused_) refused_ = function_.NonBlockingCall(std::move(action)) != napi_ok;
  }

 private:
  Napi::ThreadSafeFunction function_;
  bool refused_ = false;
};

/// A thread that is joined. At most one at a time.
class WorkThread {
 public:
  ~WorkThread() { join(); }
  bool start(std::function<void()> work) {
    join();
    work_ = std::move(work);
    running_ = ::pthread_create(
                   &thread_, nullptr,
                   [](void* self) -> void* {
                     static_cast<WorkThread*>(self)->work_();
                     return nullptr;
                   },
                   this) == 0;
    return running_;
  }
  void join() {
    if (std::exchange(running_, false)) ::pthread_join(thread_, nullptr);
  }

 private:
  std::function<void()> work_;
  pthread_t thread_{};
  bool running_ = false;
};

class PerfSide : public Napi::ObjectWrap<PerfSide> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "NativePerf",
                       {
                           InstanceMethod<&PerfSide::connect>("connect"),
                           InstanceMethod<&PerfSide::prepare>("prepare"),
                           InstanceMethod<&PerfSide::run>("run"),
                           InstanceMethod<&PerfSide::stop>("stop"),
                           InstanceMethod<&PerfSide::check_written>("checkWritten"),
                           InstanceMethod<&PerfSide::close>("close"),
                       });
  }

  explicit PerfSide(const Napi::CallbackInfo& info) : Napi::ObjectWrap<PerfSide>(info) {
    const auto given = info[0].As<Napi::Object>();
    const perf::PairOptions options = read_pair_options(given);
    std::string error;
    auto endpoint = open_endpoint(given, perf::Pair::needs(options), &error);
    if (endpoint != nullptr) pair_ = perf::Pair::open(std::move(endpoint), options, &error);
    if (pair_ == nullptr) {
      Napi::Error::New(info.Env(), "rdma-rpc: " + error).ThrowAsJavaScriptException();
      return;
    }
    const auto self = info.This().As<Napi::Object>();
    self.Set("address", perf_address(info.Env(), pair_->endpoint(), options.queue_pairs));
    self.Set("limits", perf_limits(info.Env(), pair_->endpoint().limits()));
  }

  ~PerfSide() override { end(); }

 private:
  void connect(const Napi::CallbackInfo& info) {
    std::string why;
    if (pair_ != nullptr) why = pair_->connect(read_perf_address(info[0].As<Napi::Object>()));
    work(info, info[1], [why](perf::Pair& pair, Tell& tell) {
      tell([found = why.empty() ? pair.greet() : why](Napi::Env env, Napi::Function callback) {
        callback.Call({Napi::String::New(env, found)});
      });
    });
  }

  void prepare(const Napi::CallbackInfo& info) {
    if (pair_ != nullptr) pair_->prepare(read_step(info[0].As<Napi::Object>()));
  }

  void run(const Napi::CallbackInfo& info) {
    const perf::Step step = read_step(info[0].As<Napi::Object>());
    work(info, info[1], [step](perf::Pair& pair, Tell& tell) {
      const auto measured = [&tell](std::uint64_t messages) {
        const auto count = static_cast<double>(messages);
        tell([count](Napi::Env env, Napi::Function callback) {
          callback.Call({Napi::Number::New(env, count)});
        });
      };
      const auto outcome = std::make_shared<const perf::Outcome>(pair.run(step, measured));
      tell([outcome](Napi::Env env, Napi::Function callback) {
        callback.Call({perf_outcome(env, *outcome)});
      });
    });
  }

  void stop(const Napi::CallbackInfo& info) {
    if (pair_ != nullptr) pair_->stop(static_cast<std::uint64_t>(info[0].ToNumber().Int64Value()));
  }

  Napi::Value check_written(const Napi::CallbackInfo& info) {
    perf::Outcome outcome;
    if (pair_ != nullptr) {
      thread_.join();
      pair_->check_written(read_step(info[0].As<Napi::Object>()),
                           static_cast<std::uint64_t>(info[1].ToNumber().Int64Value()), &outcome);
    }
    return perf_outcome(info.Env(), outcome);
  }

  void close(const Napi::CallbackInfo&) { end(); }

  void end() {
    if (pair_ != nullptr) pair_->stop();
    thread_.join();
    pair_.reset();
  }

  template <class Work>
  void work(const Napi::CallbackInfo& info, const Napi::Value& callback, Work work) {
    if (pair_ == nullptr) {
      Napi::Error::New(info.Env(), "rdma-rpc: closed").ThrowAsJavaScriptException();
      return;
    }
    auto tell =
        Napi::ThreadSafeFunction::New(info.Env(), callback.As<Napi::Function>(), "rdma-rpc perf", 0, 1);
    const bool started = thread_.start([this, tell, work = std::move(work)] {
      Tell to(tell);
      work(*pair_, to);
    });
    if (started) return;
    tell.Release();
    Napi::Error::New(info.Env(), "rdma-rpc: the system has no thread left (ulimit -u)")
        .ThrowAsJavaScriptException();
  }

  std::unique_ptr<perf::Pair> pair_;
  WorkThread thread_;
};

}  // namespace

void define_perf(Napi::Env env, Napi::Object exports) {
  auto constructor = std::make_shared<Napi::FunctionReference>(Napi::Persistent(PerfSide::define(env)));
  exports.Set("openPerf",
              Napi::Function::New(env, [constructor](const Napi::CallbackInfo& info) -> Napi::Value {
                return constructor->New({info[0]});
              }));
}

}  // namespace rdma_rpc::binding
