# Sourced after lib.sh: the components as a user has them, in a folder of their own, and named in the component path.
components=$work/components
mkdir "$components"
for layer in fs fbtl fcoll; do
    ln -s "$(realpath "$top_builddir/adio/ompio/.libs/mca_${layer}_deltafs.so")" "$components/" ||
        fail "there is no component for $layer"
done
export OMPI_MCA_mca_base_component_path="SYSTEM_DEFAULT:$components"
# Ranks that wait give way to those that work.
export OMPI_MCA_mpi_yield_when_idle=1

case ${CFLAGS:-}$(sed -n 's/^CFLAGS = //p' "$top_builddir/Makefile") in
*sanitize*) skip "sanitizers cannot be loaded into a program that was built without them" ;;
esac
name=deltafs:$work/file

# run N COMMAND...: on N ranks; what it says is shown if it fails.
run() {
    mpi "$@" >"$work/out" 2>&1 || {
        tail -n 40 "$work/out" >&2
        fail "exit code $?: $*"
    }
}
