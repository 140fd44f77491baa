// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * gloo's collectives, over one of its transports, between processes that this one starts:
 *
 *   gloo-verify ibverbs DEVICE RANKS FOLDER
 *   gloo-verify tcp ADDRESS RANKS FOLDER
 *
 * Ranks meet through files in the folder. Each writes the result of every collective, one number a
 * line, to FOLDER/rank-N; both transports must give the same. Results that are known without gloo
 * are checked.
 */
#include <gloo/allgather_ring.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/barrier_all_to_one.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/pairwise_exchange.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>
#include <gloo/transport/tcp/device.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using Ints = std::vector<int64_t>;
using Context = std::shared_ptr<gloo::Context>;

const int counts[] = {1, 7, 1000, 65536, 300000};

class Rank {
public:
	Rank(Context among, const std::string &file) : context(among), out(file) {}

	void all()
	{
		for (int count : counts) {
			reductions(count);
			broadcasts(count);
			gathers(count);
		}
		for (int i = 0; i < 20; i++) {
			run<gloo::BarrierAllToAll>();
			run<gloo::BarrierAllToOne>();
		}
		run<gloo::PairwiseExchange>(1 << 16, 1);
		out << "end" << std::endl;
	}

private:
	Context context;
	std::ofstream out;
	/* gloo's last Send of a run has no one who waits for its completion, before which its buffer must not go. */
	std::vector<std::unique_ptr<Ints>> memory;
	std::vector<std::unique_ptr<gloo::Algorithm>> begun;

	template <class Algorithm, class... Args> void run(Args &&...args)
	{
		begun.push_back(std::make_unique<Algorithm>(context, std::forward<Args>(args)...));
		begun.back()->run();
	}

	Ints &keep(Ints v)
	{
		memory.push_back(std::make_unique<Ints>(std::move(v)));
		return *memory.back();
	}

	int64_t value(int rank, int i) const { return (int64_t)(rank + 1) * (i % 9973 + 1); }

	Ints mine(int count) const
	{
		Ints v(count);

		for (int i = 0; i < count; i++)
			v[i] = value(context->rank, i);
		return v;
	}

	void say(const char *what, const Ints &v)
	{
		uint64_t sum = 14695981039346656037u;

		for (int64_t x : v)
			sum = (sum ^ (uint64_t)x) * 1099511628211u;
		out << what << " " << v.size() << " " << sum << std::endl;
	}

	void demand(bool ok, const char *what) const
	{
		if (ok)
			return;
		fprintf(stderr, "gloo-verify: rank %d: %s is wrong\n", context->rank, what);
		_exit(1);
	}

	template <class Algorithm> void reduce(const char *what, int count)
	{
		Ints &v = keep(mine(count));
		int64_t ranks = context->size;

		run<Algorithm>(std::vector<int64_t *>{v.data()}, count);
		for (int i = 0; i < count; i++)
			demand(v[i] == ranks * (ranks + 1) / 2 * value(0, i), what);
		say(what, v);
	}

	void reductions(int count)
	{
		reduce<gloo::AllreduceRing<int64_t>>("ring", count);
		reduce<gloo::AllreduceRingChunked<int64_t>>("ring in chunks", count);
		reduce<gloo::AllreduceHalvingDoubling<int64_t>>("halving and doubling", count);
		reduce<gloo::AllreduceBcube<int64_t>>("cube", count);
		if (count >= context->size)
			scatter(count);
	}

	void scatter(int count)
	{
		std::vector<int> shares(context->size, count / context->size);
		Ints &v = keep(mine(count));

		shares.back() += count % context->size;
		run<gloo::ReduceScatterHalvingDoubling<int64_t>>(std::vector<int64_t *>{v.data()}, count, shares);
		say("scattered sums", Ints(v.begin(), v.begin() + shares[context->rank]));
	}

	void broadcasts(int count)
	{
		for (int root = 0; root < context->size; root++) {
			Ints &v = keep(mine(count));

			run<gloo::BroadcastOneToAll<int64_t>>(std::vector<int64_t *>{v.data()}, (size_t)count, root);
			for (int i = 0; i < count; i++)
				demand(v[i] == value(root, i), "a broadcast");
			say("broadcast", v);
		}
	}

	void gathers(int count)
	{
		Ints &v = keep(mine(count)), &all = keep(Ints((size_t)count * context->size));

		run<gloo::AllgatherRing<int64_t>>(std::vector<const int64_t *>{v.data()}, all.data(), count);
		for (size_t i = 0; i < all.size(); i++)
			demand(all[i] == value((int)(i / count), (int)(i % count)), "what was gathered");
		say("gathered", all);
	}
};

std::shared_ptr<gloo::transport::Device> device(const std::string &transport, const std::string &name)
{
	if (transport == "ibverbs")
		return gloo::transport::ibverbs::CreateDevice({name, 1, 0});
	return gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(name.c_str()));
}

/* Who has written to @done waits for the end of @go: then all ranks are done, and nobody misses another. */
int run(char **argv, int rank, int done, int go)
{
	const std::string folder = argv[4];
	char c = 0;

	try {
		gloo::rendezvous::FileStore store(folder);
		auto context = std::make_shared<gloo::rendezvous::Context>(rank, atoi(argv[3]));
		auto dev = device(argv[1], argv[2]);

		context->connectFullMesh(store, dev);
		Rank r(context, folder + "/rank-" + std::to_string(rank));
		r.all();
		if (write(done, &c, 1) != 1 || read(go, &c, 1) != 0)
			return 1;
		_exit(0);
	} catch (const std::exception &e) {
		fprintf(stderr, "gloo-verify: rank %d: %s\n", rank, e.what());
		return 1;
	}
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	int status, bad = 0, ranks = argc == 5 ? atoi(argv[3]) : 0, done[2], go[2];
	char c;

	if (ranks < 2 || pipe(done) || pipe(go))
		return 2;
	for (int rank = 0; rank < ranks; rank++)
		if (!fork()) {
			close(go[1]);
			close(done[0]);
			_exit(run(argv, rank, done[1], go[0]));
		}
	close(done[1]);
	for (int rank = 0; rank < ranks && read(done[0], &c, 1) == 1; rank++)
		;
	close(go[1]);
	while (wait(&status) > 0)
		bad |= status;
	return bad ? 1 : 0;
}
