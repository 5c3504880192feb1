#include <ctype.h>
#include "credit_model.h"
#include "unit_help.h"

/* A message: a record's number from 1, and which piece it is; or the mark of a round's end. */
#define PIECE_FIRST 0x40
#define PIECE_LAST  0x80
#define MARK        0xc0
#define PIECE_MASK  0xc0

#define ORIGIN 1 /* as the holder of a channel: the rank's own records; channels into it are 2 and up */

/* A state: of each rank RANK_BYTES, of each channel CHANNEL_BYTES and its messages, then a bit for each record that
 * has arrived. */
enum { RANK_AT, RANK_ROUND, RANK_STORED, RANK_VALUE, RANK_BYTES };
enum { CHANNEL_FLAGS, CHANNEL_MIDDLE, CHANNEL_CREDITS, CHANNEL_OWED, CHANNEL_BACK, CHANNEL_BYTES };

#define HAS_MARKED   1 /* the sender has put its mark of the round */
#define HAS_ENDED    2 /* the receiver has taken it */
#define HOLDER_SHIFT 2

/* ---- Setting up ---- */

static uint32_t channel_of(const struct credit_model *m, uint32_t from, uint32_t stage, uint32_t to)
{
    for (uint32_t i = 0; i < m->channels; i++)
        if (m->channel[i].from == from && m->channel[i].stage == stage && m->channel[i].to == to)
            return i;
    fail_msg("there is no channel from %u to %u in stage %u", from, to, stage);
    return 0;
}

static void make_channels(struct credit_model *m)
{
    uint8_t sources[CREDIT_RANKS] = {0};
    uint32_t at = m->layout.ranks * RANK_BYTES;

    for (uint32_t rank = 0; rank < m->layout.ranks; rank++) {
        for (int stage = 0; stage < STAGES; stage++) {
            for (uint32_t i = 0; i < router_peers(&m->router, rank, (enum router_stage)stage); i++) {
                uint32_t to = router_peer(&m->router, rank, (enum router_stage)stage, i);
                int is_net = stage_is_net(stage);
                assert_true(m->channels < CREDIT_CHANNELS && ORIGIN + 1 + sources[to] < 1 << (8 - HOLDER_SHIFT));
                m->channel[m->channels++] =
                    (struct credit_channel){.from = (uint8_t)rank,
                                            .to = (uint8_t)to,
                                            .stage = (uint8_t)stage,
                                            .is_net = (uint8_t)is_net,
                                            .source = (uint8_t)(ORIGIN + 1 + sources[to]++),
                                            .room = (uint8_t)(is_net ? m->setting.credits : m->setting.ring),
                                            .at = (uint16_t)at};
                at += CHANNEL_BYTES + m->channel[m->channels - 1].room;
            }
        }
    }
    m->bytes = at + (uint32_t)sizeof(uint32_t);
    assert_true(m->bytes <= CREDIT_BYTES);
}

/* Number all steps that there are. */
static void make_steps(struct credit_model *m)
{
    for (int kind = 0; kind < STEP_KINDS; kind++) {
        int is_ranks = kind == STEP_DISK || kind == STEP_FINISH || kind == STEP_APPEND;
        for (uint32_t i = 0; i < (is_ranks ? m->layout.ranks : m->channels); i++)
            m->step[m->actions++] = (struct credit_step){(uint8_t)kind, (uint8_t)i};
    }
}

static int16_t next_channel(const struct credit_model *m, uint32_t rank, enum router_stage came, uint32_t to)
{
    if (rank == to)
        return -1;
    struct router_hop hop = router_next(&m->router, rank, came, to);
    return (int16_t)channel_of(m, rank, hop.stage, hop.rank);
}

static void make_routes(struct credit_model *m)
{
    for (uint32_t to = 0; to < m->layout.ranks; to++) {
        for (uint32_t rank = 0; rank < m->layout.ranks; rank++)
            m->first[rank][to] = next_channel(m, rank, STAGE_OUT, to);
        for (uint32_t i = 0; i < m->channels; i++) {
            struct credit_channel *c = &m->channel[i];
            /* No record comes to a node by NET or IN but for a rank of it. */
            int is_way = c->stage < STAGE_NET || layout_node(&m->layout, c->to) == layout_node(&m->layout, to);
            c->go[to] = c->stage == STAGE_IN || !is_way ? -1 : next_channel(m, c->to, (enum router_stage)c->stage, to);
        }
    }
}

static void make_records(struct credit_model *m)
{
    uint32_t used[CREDIT_ROUNDS][CREDIT_RANKS] = {{0}};

    m->rounds = 1;
    for (const char *p = m->setting.records; *p; p++) {
        if (*p == '|')
            m->rounds++;
        if (!isdigit((unsigned char)*p))
            continue;
        uint32_t round = m->rounds - 1, from = (uint32_t)(*p - '0'), to = (uint32_t)(p[1] - '0');
        uint8_t number = (uint8_t)(m->records + 1), *message = m->message[round][from] + used[round][from];
        assert_true(m->records < CREDIT_RECORDS && round < CREDIT_ROUNDS);
        assert_true(from < m->layout.ranks && to < m->layout.ranks);
        m->record[m->records++] = (struct credit_record){(uint8_t)to, (uint8_t)round};
        p++;
        if (p[1] == '+' && from != to) { /* a rank stores its own in one piece */
            message[0] = number | PIECE_FIRST;
            message[1] = number | PIECE_LAST;
            used[round][from] += 2;
        } else {
            message[0] = number;
            used[round][from]++;
        }
    }
}

void credit_init(struct credit_model *m, const struct credit_setting *s)
{
    uint32_t sizes[CREDIT_RANKS], nodes = 0;
    struct error e;

    memset(m, 0, sizeof *m);
    m->setting = *s;
    for (const char *p = s->nodes; *p; p++)
        sizes[nodes++] = (uint32_t)(*p - '0');
    assert_int_equal(layout_init(&m->layout, sizes, nodes, &e), DELTAFS_OK);
    assert_true(m->layout.ranks <= CREDIT_RANKS);
    m->router = router_make(s->kind, &m->layout, 1);
    make_channels(m);
    make_routes(m);
    make_records(m);
    make_steps(m);
}

void credit_fini(struct credit_model *m)
{
    layout_fini(&m->layout);
}

void credit_begin(const struct credit_model *m, uint8_t *state)
{
    memset(state, 0, m->bytes);
    for (uint32_t i = 0; i < m->channels; i++)
        if (m->channel[i].is_net)
            state[m->channel[i].at + CHANNEL_CREDITS] = (uint8_t)m->setting.credits;
}

/* ---- Steps ---- */

static int violates(struct credit_model *m, const char *what)
{
    m->violation = what;
    return -1;
}

static uint8_t *rank_state(uint8_t *state, uint32_t rank)
{
    return state + rank * RANK_BYTES;
}

/* Messages in a channel. */
static uint32_t channel_length(const struct credit_channel *c, const uint8_t *state)
{
    uint32_t n = 0;

    while (n < c->room && state[c->at + CHANNEL_BYTES + n] != 0)
        n++;
    return n;
}

/* Whether the channel's sender may put a message. */
static int channel_has_room(const struct credit_model *m, uint32_t i, const uint8_t *state)
{
    const struct credit_channel *c = &m->channel[i];

    if (c->is_net)
        return state[c->at + CHANNEL_CREDITS] > 0 || m->setting.fault == FAULT_NO_CREDIT;
    if (m->setting.fault != FAULT_ONE_RING)
        return channel_length(c, state) < c->room;
    uint32_t n = 0;
    for (uint32_t k = 0; k < m->channels; k++)
        if (m->channel[k].from == c->from && m->channel[k].to == c->to && !m->channel[k].is_net)
            n += channel_length(&m->channel[k], state);
    return n < c->room;
}

static int channel_put(struct credit_model *m, uint32_t i, uint8_t *state, uint8_t source, uint8_t message)
{
    const struct credit_channel *c = &m->channel[i];
    uint8_t *p = state + c->at, holder = p[CHANNEL_FLAGS] >> HOLDER_SHIFT;
    uint32_t n = channel_length(c, state);

    if (holder != 0 && holder != source && m->setting.fault != FAULT_NO_HOLD)
        return 0;
    if (!channel_has_room(m, i, state))
        return 0;
    if (n == c->room)
        return violates(m, "a message came for which there is no buffer");
    if ((message & PIECE_MASK) == PIECE_FIRST)
        holder = source;
    else if ((message & PIECE_MASK) == PIECE_LAST)
        holder = 0;
    p[CHANNEL_FLAGS] = (uint8_t)((p[CHANNEL_FLAGS] & (HAS_MARKED | HAS_ENDED)) | holder << HOLDER_SHIFT);
    p[CHANNEL_BYTES + n] = message;
    if (c->is_net && p[CHANNEL_CREDITS] > 0)
        p[CHANNEL_CREDITS]--;
    return 1;
}

static int rank_store(struct credit_model *m, uint32_t rank, uint8_t *state, uint8_t message)
{
    uint8_t *r = rank_state(state, rank);
    const struct credit_record *record = &m->record[(message & ~PIECE_MASK) - 1];
    uint32_t arrived, bit = 1u << ((message & ~PIECE_MASK) - 1);

    if (r[RANK_STORED] == m->setting.memtable)
        return 0;
    memcpy(&arrived, state + m->bytes - sizeof arrived, sizeof arrived);
    if (record->to != rank)
        return violates(m, "a record came to the wrong rank");
    if (arrived & bit)
        return violates(m, "a record came twice");
    if (record->round != r[RANK_ROUND])
        return violates(m, "a record came in the wrong round");
    arrived |= bit;
    memcpy(state + m->bytes - sizeof arrived, &arrived, sizeof arrived);
    r[RANK_STORED]++;
    return 1;
}

/* Deliver: one value in pieces at a time is put together, others wait for it. */
static int rank_deliver(struct credit_model *m, uint32_t rank, uint8_t *state, uint8_t message)
{
    uint8_t *r = rank_state(state, rank), number = message & (uint8_t)~PIECE_MASK;
    int status;

    if ((message & PIECE_MASK) == PIECE_FIRST) {
        if (r[RANK_VALUE] != 0)
            return 0;
        r[RANK_VALUE] = number;
        return 1;
    }
    if ((message & PIECE_MASK) == PIECE_LAST && r[RANK_VALUE] != number)
        return violates(m, "a value's last piece came without its first");
    status = rank_store(m, rank, state, message);
    if (status == 1 && (message & PIECE_MASK) == PIECE_LAST)
        r[RANK_VALUE] = 0;
    return status;
}

static int step_append(struct credit_model *m, uint32_t rank, uint8_t *state)
{
    uint8_t *r = rank_state(state, rank), message;
    int status, channel;

    if (r[RANK_ROUND] == m->rounds)
        return 0;
    message = m->message[r[RANK_ROUND]][rank][r[RANK_AT]];
    if (message == 0)
        return 0;
    channel = m->first[rank][m->record[(message & ~PIECE_MASK) - 1].to];
    status =
        channel < 0 ? rank_deliver(m, rank, state, message) : channel_put(m, (uint32_t)channel, state, ORIGIN, message);
    r[RANK_AT]++;
    return status;
}

/* The message at the head goes on, or is stored. */
static int step_take(struct credit_model *m, uint32_t i, uint8_t *state)
{
    const struct credit_channel *c = &m->channel[i];
    uint8_t *p = state + c->at, *r = rank_state(state, c->to), message = p[CHANNEL_BYTES];
    uint8_t piece = message & PIECE_MASK, number = message & (uint8_t)~PIECE_MASK;
    int status;

    if (message == 0 || r[RANK_ROUND] == m->rounds || p[CHANNEL_FLAGS] & HAS_ENDED)
        return 0;
    if (p[CHANNEL_MIDDLE] != (piece == PIECE_LAST ? number : 0))
        return violates(m, "between the pieces of a value came something else");
    if (piece == MARK) {
        if (number != r[RANK_ROUND])
            return violates(m, "the mark of another round came");
        p[CHANNEL_FLAGS] |= HAS_ENDED;
    } else {
        uint8_t to = m->record[number - 1].to;
        if (c->to != to && c->go[to] < 0)
            return violates(m, "a record came where it cannot go on");
        status = c->to == to ? rank_deliver(m, to, state, message)
                             : channel_put(m, (uint32_t)c->go[to], state, c->source, message);
        if (status != 1)
            return status;
        p[CHANNEL_MIDDLE] = piece == PIECE_FIRST ? number : 0;
    }
    memmove(p + CHANNEL_BYTES, p + CHANNEL_BYTES + 1, c->room - 1u);
    p[CHANNEL_BYTES + c->room - 1] = 0;
    if (c->is_net)
        p[CHANNEL_OWED]++;
    return 1;
}

/* A rank that has appended all puts its mark where nothing more can come to be sent. */
static int step_mark(struct credit_model *m, uint32_t i, uint8_t *state)
{
    const struct credit_channel *c = &m->channel[i];
    uint8_t *r = rank_state(state, c->from);

    if (r[RANK_ROUND] == m->rounds || state[c->at] & HAS_MARKED || m->message[r[RANK_ROUND]][c->from][r[RANK_AT]] != 0)
        return 0;
    for (uint32_t k = 0; k < m->channels && m->setting.fault != FAULT_EARLY_END; k++) {
        const struct credit_channel *in = &m->channel[k];
        if (in->to == c->from && in->stage < c->stage && !(state[in->at] & HAS_ENDED))
            return 0;
    }
    int status = channel_put(m, i, state, ORIGIN, MARK | r[RANK_ROUND]);
    state[c->at] |= HAS_MARKED;
    return status;
}

/* All marks are put and taken: the round is complete here, and the next one begins. */
static int step_finish(struct credit_model *m, uint32_t rank, uint8_t *state)
{
    uint8_t *r = rank_state(state, rank);
    uint32_t arrived;

    if (r[RANK_ROUND] == m->rounds || m->message[r[RANK_ROUND]][rank][r[RANK_AT]] != 0)
        return 0;
    for (uint32_t i = 0; i < m->channels; i++) {
        const struct credit_channel *c = &m->channel[i];
        if ((c->to == rank && !(state[c->at] & HAS_ENDED)) || (c->from == rank && !(state[c->at] & HAS_MARKED)))
            return 0;
    }
    memcpy(&arrived, state + m->bytes - sizeof arrived, sizeof arrived);
    for (uint32_t i = 0; i < m->records; i++)
        if (m->record[i].to == rank && m->record[i].round == r[RANK_ROUND] && !(arrived >> i & 1))
            return violates(m, "a round ended before all its records had come");
    if (r[RANK_VALUE] != 0)
        return violates(m, "a round ended within a value");
    for (uint32_t i = 0; i < m->channels; i++) {
        if (m->channel[i].to == rank)
            state[m->channel[i].at] &= (uint8_t)~HAS_ENDED;
        if (m->channel[i].from == rank)
            state[m->channel[i].at] &= (uint8_t)~HAS_MARKED;
    }
    r[RANK_ROUND]++;
    r[RANK_AT] = 0;
    return 1;
}

/* One unit from here to there. */
static int step_move(uint8_t *from, uint8_t *to)
{
    if (*from == 0)
        return 0;
    --*from;
    ++*to;
    return 1;
}

static int step_any(struct credit_model *m, struct credit_step s, uint8_t *state)
{
    uint8_t *channel = state + m->channel[s.i % m->channels].at, *rank = rank_state(state, s.i % m->layout.ranks);

    switch (s.kind) {
    case STEP_CREDIT:
        return step_move(channel + CHANNEL_BACK, channel + CHANNEL_CREDITS);
    case STEP_GIVE: /* only within a round: between them a rank does nothing for others */
        if (rank_state(state, m->channel[s.i].to)[RANK_ROUND] == m->rounds)
            return 0;
        return step_move(channel + CHANNEL_OWED, channel + CHANNEL_BACK);
    case STEP_DISK:
        if (rank[RANK_STORED] < m->setting.memtable)
            return 0;
        rank[RANK_STORED] = 0;
        return 1;
    case STEP_FINISH:
        return step_finish(m, s.i, state);
    case STEP_TAKE:
        return step_take(m, s.i, state);
    case STEP_MARK:
        return step_mark(m, s.i, state);
    default:
        return step_append(m, s.i, state);
    }
}

/* Of each channel over the network, all credits are somewhere. */
static int credits_are_kept(const struct credit_model *m, const uint8_t *state)
{
    for (uint32_t i = 0; i < m->channels; i++) {
        const struct credit_channel *c = &m->channel[i];
        const uint8_t *p = state + c->at;
        uint32_t credits = (uint32_t)p[CHANNEL_CREDITS] + p[CHANNEL_OWED] + p[CHANNEL_BACK];
        if (c->is_net && credits + channel_length(c, state) != c->room)
            return 0;
    }
    return 1;
}

/* Whether there is anything at all for a step to move: most often there is not. */
static int step_is_idle(const struct credit_model *m, struct credit_step s, const uint8_t *state)
{
    switch (s.kind) {
    case STEP_CREDIT:
        return state[m->channel[s.i].at + CHANNEL_BACK] == 0;
    case STEP_GIVE:
        return state[m->channel[s.i].at + CHANNEL_OWED] == 0;
    case STEP_TAKE:
        return state[m->channel[s.i].at + CHANNEL_BYTES] == 0;
    case STEP_MARK:
        return state[m->channel[s.i].at] & HAS_MARKED;
    default:
        return 0;
    }
}

int credit_step(struct credit_model *m, const uint8_t *from, uint32_t action, uint8_t *to)
{
    struct credit_step s = m->step[action];
    int status;

    if (step_is_idle(m, s, from))
        return 0;
    memcpy(to, from, m->bytes);
    status = step_any(m, s, to);
    if (status == 1 && m->setting.fault != FAULT_NO_CREDIT && !credits_are_kept(m, to))
        return violates(m, "credits were lost, or came from nowhere");
    return status;
}

int credit_is_free(const struct credit_model *m, const uint8_t *state, uint32_t action)
{
    struct credit_step s = m->step[action];

    if (s.kind == STEP_TAKE)
        return (state[m->channel[s.i].at + CHANNEL_BYTES] & PIECE_MASK) == MARK;
    return s.kind == STEP_CREDIT || s.kind == STEP_GIVE || s.kind == STEP_FINISH || s.kind == STEP_MARK;
}

int credit_is_complete(const struct credit_model *m, const uint8_t *state)
{
    for (uint32_t i = 0; i < m->layout.ranks; i++)
        if (state[i * RANK_BYTES + RANK_ROUND] != m->rounds)
            return 0;
    for (uint32_t i = 0; i < m->channels; i++)
        if (channel_length(&m->channel[i], state) > 0)
            return 0;
    return 1;
}

void credit_describe(const struct credit_model *m, const uint8_t *state, uint32_t action, char *text, size_t n)
{
    static const char *const kinds[] = {
        [STEP_CREDIT] = "a credit has come back for",
        [STEP_GIVE] = "a credit leaves, for",
        [STEP_DISK] = "the disk has taken what was stored by",
        [STEP_FINISH] = "the round is complete at",
        [STEP_TAKE] = "the head is taken of",
        [STEP_MARK] = "the mark is put into",
        [STEP_APPEND] = "a record is appended by",
    };
    static const char *const stages[] = {"OUT", "VIA", "MID", "NET", "IN"};
    struct credit_step s = m->step[action];
    const struct credit_channel *c = &m->channel[s.i % m->channels];

    if (s.kind == STEP_DISK || s.kind == STEP_FINISH || s.kind == STEP_APPEND)
        snprintf(text, n, "%s rank %u", kinds[s.kind], s.i);
    else
        snprintf(text, n, "%s %s from %u to %u (0x%02x)", kinds[s.kind], stages[c->stage], c->from, c->to,
                 state[c->at + CHANNEL_BYTES]);
}
