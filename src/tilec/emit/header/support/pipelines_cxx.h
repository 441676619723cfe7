
/* ---- Public: graphs in C++17 --------------------------------------------------------------------------------------- */

#ifdef __cplusplus
namespace tilec {

/* The streams that a pipeline runs on, the caller's first: `{one, two}`, or what has `data()` and `size()`, as a
 * std::vector<tilec_stream>. For the length of a call: it does not keep them. */
class stream_list {
public:
    TILEC_HIDDEN stream_list(std::initializer_list<tilec_stream> listed) : stream_list(listed.begin(), listed.size()) {}
    template <class Streams, class = decltype(std::data(std::declval<const Streams &>()))>
    TILEC_HIDDEN stream_list(const Streams &listed) : stream_list(std::data(listed), std::size(listed))
    {
    }
    TILEC_HIDDEN const tilec_stream *first() const { return first_; }
    TILEC_HIDDEN std::int32_t count() const { return count_; }

private:
    /* Of more streams than launches use, how many more does not matter. */
    TILEC_HIDDEN stream_list(const tilec_stream *first, std::size_t count)
        : first_(first), count_(count < TILEC_STREAMS ? static_cast<std::int32_t>(count) : std::int32_t{TILEC_STREAMS})
    {
    }
    const tilec_stream *first_;
    std::int32_t count_;
};

/* A pipeline as a CUDA graph, which owns the memory for its temporaries: `tilec::graph g = tilec::NAME_graph(...)`.
 * The arguments of `update` are those of the function that made it. */
template <class... Arguments> class [[nodiscard]] graph {
public:
    using function = tilec_status (*)(tilec_graph *, Arguments...);

    TILEC_HIDDEN graph(tilec_status code, tilec_graph *made, function changed) : status_(code), graph_(made), update_(changed) {}
    TILEC_HIDDEN graph(graph &&other) noexcept
        : status_(std::move(other.status_)), graph_(std::exchange(other.graph_, nullptr)), update_(other.update_)
    {
    }
    TILEC_HIDDEN graph &operator=(graph &&other) noexcept
    {
        std::swap(status_, other.status_);
        std::swap(graph_, other.graph_);
        std::swap(update_, other.update_);
        return *this;
    }
    graph(const graph &) = delete;
    graph &operator=(const graph &) = delete;
    TILEC_HIDDEN ~graph() { tilec_graph_destroy(graph_); }

    /* What making it gave. */
    TILEC_HIDDEN const status &result() const { return status_; }
    TILEC_HIDDEN status replay(tilec_stream stream) { return status(tilec_graph_launch(graph_, stream)); }
    TILEC_HIDDEN status update(Arguments... arguments) { return status(update_(graph_, arguments...)); }

private:
    status status_;
    tilec_graph *graph_;
    function update_;
};

} /* namespace tilec */
#endif
#endif /* TILEC_PIPELINES */
