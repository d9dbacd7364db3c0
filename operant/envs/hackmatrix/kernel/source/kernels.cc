// The functions that XLA calls: those for processors, and with a compiler for GPUs those for GPUs too.
#include "cpu.h"
#ifdef __CUDACC__
#include "gpu.h"
#endif

#define STEP_RESULTS .Ret<Words>().Ret<Words>().Ret<Numbers>().Ret<Flags>().Ret<Flags>()
#define STEP_BINDING(bind) \
    bind.Arg<Words>().Arg<Words>().Arg<Actions>().Attr<int>("limit") STEP_RESULTS.RemainingRets()
#define ADVANCE_BINDING(bind)                                                              \
    bind.Arg<Words>().Arg<Words>().Arg<Actions>().Arg<Words>().Attr<int>("limit") STEP_RESULTS \
        .Ret<Numbers>().RemainingRets()

#define ON_THREADS ffi::Ffi::Bind().Ctx<ffi::ThreadPool>()
XLA_FFI_DEFINE_HANDLER_SYMBOL(cpu_mask, cpu::Mask, ffi::Ffi::Bind().Arg<Words>().Ret<Flags>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(cpu_observe, cpu::Observe, ffi::Ffi::Bind().Arg<Words>().Ret<Numbers>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(cpu_reset, cpu::Reset, ffi::Ffi::Bind().Arg<Words>().Ret<Words>().Ret<Numbers>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(cpu_step, cpu::Step, STEP_BINDING(ON_THREADS));
XLA_FFI_DEFINE_HANDLER_SYMBOL(cpu_advance, cpu::Advance, ADVANCE_BINDING(ON_THREADS));

#ifdef __CUDACC__
#define ON_GPU ffi::Ffi::Bind().Ctx<ffi::PlatformStream<cudaStream_t>>()
extern "C" const char* cuda_load(int devices) {  // what went wrong, or nothing
    cudaError_t error = gpu::load_kernels(devices);
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

#define CAPTURED {ffi::Traits::kCmdBufferCompatible}
XLA_FFI_DEFINE_HANDLER_SYMBOL(cuda_mask, gpu::Mask, ON_GPU.Arg<Words>().Ret<Flags>(), CAPTURED);
XLA_FFI_DEFINE_HANDLER_SYMBOL(cuda_observe, gpu::Observe, ON_GPU.Arg<Words>().Ret<Numbers>(), CAPTURED);
XLA_FFI_DEFINE_HANDLER_SYMBOL(cuda_reset, gpu::Reset, ON_GPU.Arg<Words>().Ret<Words>().Ret<Numbers>(), CAPTURED);
XLA_FFI_DEFINE_HANDLER_SYMBOL(cuda_step, gpu::Step, STEP_BINDING(ON_GPU), CAPTURED);
XLA_FFI_DEFINE_HANDLER_SYMBOL(cuda_advance, gpu::Advance, ADVANCE_BINDING(ON_GPU), CAPTURED);
#endif
