//! The unwinder of the static binary: it finds no frames.
//!
//! The standard library walks and names the frames of a panic through the
//! functions below. In a stripped binary whose panics abort there is nothing to
//! name and nothing to unwind. With these in place of libunwind's, the optimiser
//! sees that the readers of debug information are never called, and leaves them
//! out: 280 KB. The message of a panic and its abort stay as they are.
//!
//! A crate of its own, since the attribute that gives a function such a name is an
//! unsafe one, which the watchdog forbids itself: it vouches that nobody else defines
//! these names. All of libunwind's are here, or the linker would take its object
//! files too. `make static` builds and links it; no other build knows of it.
#![cfg(all(
    target_env = "musl",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    panic = "abort"
))]

use std::ffi::{c_int, c_void};

/// Points to what only a real unwinder would read.
type Ptr = *mut c_void;

macro_rules! nothing {
    ($($name:ident($($kind:ty),*) -> $back:ty { $value:expr })*) => {
        $(
            #[doc(hidden)]
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($(_: $kind),*) -> $back {
                $value
            }
        )*
    };
}

/// `_URC_END_OF_STACK`
const END_OF_STACK: c_int = 5;
const NULL: Ptr = std::ptr::null_mut();

nothing! {
    _Unwind_Backtrace(Ptr, Ptr) -> c_int { END_OF_STACK }
    _Unwind_RaiseException(Ptr) -> c_int { END_OF_STACK }
    _Unwind_ForcedUnwind(Ptr, Ptr, Ptr) -> c_int { END_OF_STACK }
    _Unwind_Resume(Ptr) -> ! { std::process::abort() }
    _Unwind_Resume_or_Rethrow(Ptr) -> c_int { END_OF_STACK }
    _Unwind_DeleteException(Ptr) -> () { () }
    _Unwind_GetIP(Ptr) -> usize { 0 }
    _Unwind_GetIPInfo(Ptr, Ptr) -> usize { 0 }
    _Unwind_GetCFA(Ptr) -> usize { 0 }
    _Unwind_GetGR(Ptr, c_int) -> usize { 0 }
    _Unwind_GetLanguageSpecificData(Ptr) -> Ptr { NULL }
    _Unwind_GetRegionStart(Ptr) -> usize { 0 }
    _Unwind_GetTextRelBase(Ptr) -> usize { 0 }
    _Unwind_GetDataRelBase(Ptr) -> usize { 0 }
    _Unwind_FindEnclosingFunction(Ptr) -> Ptr { NULL }
    _Unwind_Find_FDE(Ptr, Ptr) -> Ptr { NULL }
    _Unwind_SetGR(Ptr, c_int, usize) -> () { () }
    _Unwind_SetIP(Ptr, usize) -> () { () }
}
