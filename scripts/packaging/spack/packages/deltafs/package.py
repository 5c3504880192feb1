"""How Spack builds DeltaFS in C from its source folder; deltafs-install(7) says how to use this."""

from spack.package import *


class Deltafs(AutotoolsPackage):
    """Trajectories of particles right after a simulation's run: a C library with drivers for MPI-IO and HDF5."""

    license("BSD-3-Clause")
    has_code = True

    version("0.2.0")

    variant("mpi", default=True, description="Build the library and the command for MPI jobs")
    variant("hdf5", default=False, description="Build the HDF5 driver")

    depends_on("c", type="build")
    depends_on("autoconf@2.71:", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("libtool", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("snappy+shared")
    depends_on("xxhash")
    depends_on("lmdb", when="+mpi")
    depends_on("mpi@3:", when="+mpi")
    depends_on("hdf5@1.14: +shared", when="+hdf5")
    depends_on("hdf5 +mpi", when="+hdf5 +mpi")
    depends_on("hdf5 ~mpi", when="+hdf5 ~mpi")

    build_directory = "spack-build"

    def configure_args(self):
        args = []
        if self.spec.satisfies("+mpi"):
            args.append("MPICC={0}".format(self.spec["mpi"].mpicc))
        else:
            args.append("--without-mpi")
        if self.spec.satisfies("+hdf5"):
            args.append("--with-hdf5={0}".format(self.spec["hdf5"].prefix))
        return args
