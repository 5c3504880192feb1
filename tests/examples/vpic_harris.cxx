/* Example: an input deck for VPIC that writes its tracers through DeltaFS. Put vpic_deltafs.h beside it. VPIC itself
 * does not change, but it must number particles: branch devel, configured with GLOBAL_PARTICLE_ID. The plain particle
 * of VPIC has no room for a number, and neither does the branch master. deltafs(7) says how to build it.
 *
 *     mpirun -np 2 ./vpic_harris.Linux STEPS INTERVAL [files]
 *
 * Every INTERVAL steps, the tracers are appended to the directories electrons and ions. With "files", dump_particles
 * writes them to files as well.
 *
 * The plasma is a Harris sheet: B = b0 tanh(z/L) along x, and the pressure of electrons and ions balances it. A small
 * perturbation starts the reconnection. Units: c, the electrons' charge and mass, and the density of the sheet are 1,
 * so lengths are in electron skin depths, and times in inverse electron plasma frequencies. */
#include "vpic_deltafs.h"

/* Not saved in checkpoints: a run that is restored opens the directories again. */
static struct vpic_deltafs electrons, ions;

begin_globals
{
    int interval, has_files;
};

begin_initialization
{
    const double mass_ratio = 25, b0 = 0.5, L = 0.5;
    const double Lx = 12.8, Ly = 0.4, Lz = 6.4;
    const int nx = 32, nz = 16, per_cell = 20;

    const double T = b0 * b0 / 4; /* of each species: together they balance b0 * b0 / 2 */
    const double drift = 2 * T / (b0 * L);
    const double edge = tanh(Lz / (2 * L));
    const int pairs = nx * nz * per_cell / nproc();
    const double weight = 2 * L * edge * Lx * Ly / ((double)pairs * nproc());
    const double b1 = 0.05 * b0;

    if (num_cmdline_arguments < 3 || atoi(cmdline_argument[2]) < 1) {
        sim_log("usage: " << cmdline_argument[0] << " STEPS INTERVAL [files]");
        abort(2);
    }
    num_step = atoi(cmdline_argument[1]);
    global->interval = atoi(cmdline_argument[2]);
    checkpt_interval = 2 * global->interval;
    global->has_files = num_cmdline_arguments > 3;

    /* Ranks lie along x, in which the box is periodic. Walls close it in z. */
    define_units(1, 1);
    define_timestep(0.95 * courant_length(Lx, Ly, Lz, nx, 1, nz));
    define_periodic_grid(-Lx / 2, 0, -Lz / 2, Lx / 2, Ly, Lz / 2, nx, 1, nz, nproc(), 1, 1);
    set_domain_field_bc(BOUNDARY(0, 0, -1), pec_fields);
    set_domain_field_bc(BOUNDARY(0, 0, 1), pec_fields);
    set_domain_particle_bc(BOUNDARY(0, 0, -1), reflect_particles);
    set_domain_particle_bc(BOUNDARY(0, 0, 1), reflect_particles);
    define_material("vacuum", 1);
    define_field_array(NULL, 0);

    /* The perturbation is the curl of b1 * cos(2 pi x / Lx) * cos(pi z / Lz) along y. */
    const double kx = 2 * M_PI / Lx, kz = M_PI / Lz;
    set_region_field(everywhere, 0, 0, 0, b0 * tanh(z / L) + b1 * kz * cos(kx * x) * sin(kz * z), 0,
                     -b1 * kx * sin(kx * x) * cos(kz * z));

    species_t *electron = define_species("electron", -1, 1, 2.0 * pairs, -1, 20, 1);
    species_t *ion = define_species("ion", 1, mass_ratio, 2.0 * pairs, -1, 40, 1);
    const double slow = sqrt(T / mass_ratio), fast = sqrt(T);
    seed_entropy(1);
    repeat(pairs)
    {
        const double x = uniform(rng(0), grid->x0, grid->x1), y = uniform(rng(0), 0, Ly);
        const double z = L * atanh(uniform(rng(0), -edge, edge));
        inject_particle(electron, x, y, z, normal(rng(0), 0, fast), normal(rng(0), -drift, fast),
                        normal(rng(0), 0, fast), weight, 0, 0);
        inject_particle(ion, x, y, z, normal(rng(0), 0, slow), normal(rng(0), drift, slow), normal(rng(0), 0, slow),
                        weight, 0, 0);
    }

    /* Every tenth particle, as a copy without weight. An ID consists of the rank and the place in the rank's array,
     * with as many digits for the place as the length of the array has. So IDs are unique if the arrays of all ranks
     * have the same length, as here. With make_n_tracers and make_tracers_by_predicate they differ in length: then set
     * the p_id[i] of the new species to unique numbers. */
    make_tracers_by_nth(electron, 10, Tracertype::Copy, "electron_tracer");
    make_tracers_by_nth(ion, 10, Tracertype::Copy, "ion_tracer");
}

begin_diagnostics
{
    if (step() % global->interval == 0) {
        vpic_deltafs_dump(&electrons, "electrons", find_species("electron_tracer"), interpolator_array);
        vpic_deltafs_dump(&ions, "ions", find_species("ion_tracer"), interpolator_array);
    }
    if (step() % global->interval == 0 && global->has_files) {
        dump_particles("electron_tracer", "electron_tracer");
        dump_particles("ion_tracer", "ion_tracer");
    }
    /* After the dumps: a restored run does not repeat the diagnostics of the checkpoint's step. */
    if (step() > 0 && step() % checkpt_interval == 0)
        checkpt("checkpoint", (int)step());
    if (step() == num_step) {
        vpic_deltafs_close(&electrons);
        vpic_deltafs_close(&ions);
    }
}

begin_particle_injection
{
}

begin_current_injection
{
}

begin_field_injection
{
}

begin_particle_collisions
{
}
