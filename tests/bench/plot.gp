# Bandwidth and latency over size, from bandwidth.dat and latency.dat: one block for each curve, its
# name first. Run in the folder that has them; bandwidth_of and latency_of say of what they are.
if (!exists("bandwidth_of")) \
	bandwidth_of = "RDMA Writes (TCP: the better of iperf3 and qperf), MTU 1500, CRC off"
if (!exists("latency_of")) \
	latency_of = "RDMA Writes to and fro (TCP: spinning sockets), MTU 1500, CRC off"
set terminal svg size 760,440 font "sans-serif,13" background "white"
set logscale x 2
set logscale y 10
set grid
set key outside right
set xtics ("8" 8, "64" 64, "256" 256, "1K" 1024, "4K" 4096, "16K" 16384, "64K" 65536, \
	"256K" 262144, "1M" 1048576)
set xlabel "octets of a message"
set style data linespoints

set output "bandwidth.svg"
set title bandwidth_of
set ylabel "10^6 octets a second"
stats "bandwidth.dat" using 1 nooutput
plot for [i=0:STATS_blocks-1] "bandwidth.dat" index i using 1:2 linewidth 2 title columnheader(1)

set output "latency.svg"
set title latency_of
set ylabel "µs, half a round trip, typical"
stats "latency.dat" using 1 nooutput
plot for [i=0:STATS_blocks-1] "latency.dat" index i using 1:2 linewidth 2 title columnheader(1)
