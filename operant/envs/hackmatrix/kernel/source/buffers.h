// What XLA hands to a kernel. All leading axes of a buffer are games, so a call may be batched in any way.
#pragma once
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using Words = ffi::Buffer<ffi::U32>;
using Numbers = ffi::Buffer<ffi::F32>;
using Flags = ffi::Buffer<ffi::PRED>;
using Actions = ffi::Buffer<ffi::S32>;
template <typename Kind> using Out = ffi::Result<Kind>;
