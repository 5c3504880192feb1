/* What vpic_harris.cxx uses of VPIC, to check that it compiles where there is no VPIC. The names and types are VPIC's.
 */
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>

#define vpic_h
#define VPIC_GLOBAL_PARTICLE_ID ON
#define BOUNDARY(i, j, k)       (13 + (i) + 3 * (j) + 9 * (k))
enum { pec_fields = -1, reflect_particles = -1 };
enum class Tracertype { Copy, Move };

struct rng_t;
struct material_t;
struct field_array_t;
struct interpolator_array_t;

struct particle_t {
    float dx, dy, dz;
    int32_t i;
    float ux, uy, uz, w;
};

struct grid_t {
    float dt, cvac, eps0, dx, dy, dz;
    int64_t step;
    double x0, y0, z0, x1, y1, z1;
    int nx, ny, nz;
};

class species_t
{
  public:
    float q, m;
    int np;
    particle_t *p;
    size_t *p_id;
    grid_t *g;
};

int nproc();
int rank();
void center_p(species_t *sp, const interpolator_array_t *fields);
void checkpt(const char *path, int tag);

class vpic_simulation
{
    int num_step, checkpt_interval;
    grid_t *grid;
    interpolator_array_t *interpolator_array;
    char user_global[16384];

    int64_t &step();
    void abort(double code);
    double courant_length(double lx, double ly, double lz, double nx, double ny, double nz);
    void define_units(float cvac, float eps0);
    void define_timestep(double dt, double t0 = 0, int64_t step = 0);
    void define_periodic_grid(double xl, double yl, double zl, double xh, double yh, double zh, double gnx, double gny,
                              double gnz, double gpx, double gpy, double gpz);
    void set_domain_field_bc(int boundary, int bc);
    void set_domain_particle_bc(int boundary, int bc);
    material_t *define_material(const char *name, double eps, double mu = 1, double sigma = 0, double zeta = 0);
    void define_field_array(field_array_t *fields = NULL, double damp = 0);
    species_t *define_species(const char *name, double q, double m, double max_np, double max_nm, double sort_interval,
                              double sort_out_of_place);
    species_t *find_species(const char *name);
    species_t *make_tracers_by_nth(species_t *parent, float nth, Tracertype type, std::string name);
    void inject_particle(species_t *sp, double x, double y, double z, double ux, double uy, double uz, double w,
                         double age = 0, int update_rhob = 1);
    void seed_entropy(int base);
    rng_t *rng(int n);
    double uniform(rng_t *rng, double low, double high);
    double normal(rng_t *rng, double mu, double sigma);
    void dump_particles(const char *species, const char *path, int tag = 1);

    void user_initialization(int num_cmdline_arguments, char **cmdline_argument);
    void user_diagnostics();
    void user_particle_injection();
    void user_current_injection();
    void user_field_injection();
    void user_particle_collisions();
};

#define begin_globals struct user_global_t
#define global        ((struct user_global_t *)user_global)
#define begin_initialization                                                                                           \
    void vpic_simulation::user_initialization(int num_cmdline_arguments, char **cmdline_argument)
#define begin_diagnostics         void vpic_simulation::user_diagnostics()
#define begin_particle_injection  void vpic_simulation::user_particle_injection()
#define begin_current_injection   void vpic_simulation::user_current_injection()
#define begin_field_injection     void vpic_simulation::user_field_injection()
#define begin_particle_collisions void vpic_simulation::user_particle_collisions()
#define repeat(count)             for (int64_t left = (count); left; left--)
#define sim_log(text)             (std::cerr << text << std::endl)
#define everywhere                true
#define set_region_field(region, ex, ey, ez, bx, by, bz)                                                               \
    for (double x = 0, y = 0, z = 0, field = 0; region && x < 1; x++)                                                  \
    field += (ex) + (ey) + (ez) + (bx) + (by) + (bz) + y + z
